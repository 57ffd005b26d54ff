/* SPDX-License-Identifier: Apache-2.0 */
/* top: live view of the clients' usage between two samples. */
#include "base/clock.h"
#include "ctl/command.h"
#include "ctl/value.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define CLEAR "\033[H\033[J"

struct top_sample {
	Gpupool__AdminReply *reply;
	uint64_t at_ns;
};

static const Gpupool__AdminSession *
sample_find_session(const struct top_sample *top_sample, uint64_t id)
{
	for (size_t i = 0; top_sample->reply && i < top_sample->reply->report->n_sessions; i++) {
		if (top_sample->reply->report->sessions[i]->id == id)
			return top_sample->reply->report->sessions[i];
	}
	return NULL;
}

/* In hundredths of a percent, capped at 100 %: kernels of several sessions that run concurrently
 * add up to more, and sampled times can arrive late. */
static uint64_t
busy_share(uint64_t before_ns, uint64_t now, uint64_t elapsed_ns)
{
	uint64_t hundredths;

	if (elapsed_ns <= 0 || now < before_ns)
		return 0;
	hundredths = (uint64_t)((double)(now - before_ns) * 10000 / (double)elapsed_ns);
	return hundredths < 10000 ? hundredths : 10000;
}

static uint64_t
per_second(uint64_t before, uint64_t now, uint64_t elapsed_ns)
{
	if (elapsed_ns <= 0 || now < before)
		return 0;
	return (uint64_t)((double)(now - before) * 1e9 / (double)elapsed_ns);
}

/* A client that is not in the previous sample has started since, at 0. */
static void
add_session(struct ctl_table *table, const struct top_sample *before, const struct top_sample *now,
	    const Gpupool__AdminSession *s, size_t index)
{
	static const Gpupool__AdminCounts none = GPUPOOL__ADMIN_COUNTS__INIT;
	const Gpupool__AdminSession *old = sample_find_session(before, s->id);
	const Gpupool__AdminCounts *counts = s->counts ? s->counts : &none;
	const Gpupool__AdminCounts *old_counts = old && old->counts ? old->counts : &none;
	const Gpupool__AdminLine *line = s->lines[index];
	uint64_t old_ns = old && index < old->n_lines ? old->lines[index]->gpu_ns : 0;
	uint64_t elapsed = now->at_ns - before->at_ns;

	ctl_table_number(table, s->id);
	ctl_table_text(table, s->tenant);
	ctl_table_text(table, s->host);
	ctl_table_text(table, s->user);
	ctl_table_number(table, s->pid);
	ctl_table_number(table, line->device);
	ctl_table_number(table, busy_share(old_ns, line->gpu_ns, elapsed));
	ctl_table_number(table, line->memory);
	ctl_table_number(table, ctl_memory_limit(now->reply->report, s, line));
	ctl_table_number(table, per_second(old_counts->launches, counts->launches, elapsed));
	ctl_table_number(table, per_second(old_counts->copied_in, counts->copied_in, elapsed));
	ctl_table_number(table, per_second(old_counts->copied_out, counts->copied_out, elapsed));
	ctl_table_text(table, s->program);
}

/* The keyboard, without line buffering and echo. */
static struct termios keyboard_before;

static bool
open_keyboard(void)
{
	struct termios now;

	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &keyboard_before))
		return false;
	now = keyboard_before;
	now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	return tcsetattr(STDIN_FILENO, TCSANOW, &now) == 0;
}

static void
close_keyboard(void)
{
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &keyboard_before);
}

/* Restores the terminal's echo. */
static void
signal_handle(int number)
{
	close_keyboard();
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

/* Waits until the next sample is due. Returns true if q is pressed. */
static bool
wait_for_key(bool keys, uint64_t seconds)
{
	uint64_t until = gp_now_ns() + seconds * UINT64_C(1000000000);
	struct pollfd wait = { .fd = STDIN_FILENO, .events = POLLIN };

	if (!keys) {
		gp_sleep_ns(seconds * UINT64_C(1000000000));
		return false;
	}
	for (uint64_t now = gp_now_ns(); now < until; now = gp_now_ns()) {
		char key = 0;

		if (poll(&wait, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			return true;
	}
	return false;
}

static void
print_sessions(const struct ctl *ctl, const struct top_sample *before, const struct top_sample *now)
{
	static const struct ctl_column columns[] = {
		{ "ID", "id", CTL_NUMBER },
		{ "TENANT", "tenant", CTL_TEXT },
		{ "HOST", "host", CTL_TEXT },
		{ "USER", "user", CTL_TEXT },
		{ "PID", "pid", CTL_NUMBER },
		{ "GPU", "gpu", CTL_NUMBER },
		{ "BUSY", "busy_percent", CTL_PERCENT },
		{ "MEMORY", "memory_bytes", CTL_BYTES },
		{ "LIMIT", "memory_limit_bytes", CTL_LIMIT },
		{ "LAUNCHES/S", "launches_per_second", CTL_NUMBER },
		{ "IN/S", "copied_in_bytes_per_second", CTL_BYTES },
		{ "OUT/S", "copied_out_bytes_per_second", CTL_BYTES },
		{ "PROGRAM", "program", CTL_TEXT },
	};
	/* On a narrow terminal columns are omitted from the end of this list. */
	static const char *const least[] = { "busy_percent",
					     "memory_bytes",
					     "program",
					     "tenant",
					     "user",
					     "memory_limit_bytes",
					     "gpu",
					     "host",
					     "launches_per_second",
					     "pid",
					     "copied_in_bytes_per_second",
					     "copied_out_bytes_per_second" };
	const Gpupool__AdminReport *report = now->reply->report;
	struct ctl_table table;

	ctl_table_init(&table, columns, COUNT(columns));
	ctl_table_fit(&table, ctl_terminal_width(), least, COUNT(least));
	for (size_t i = 0; i < report->n_sessions; i++) {
		for (size_t d = 0; d < report->sessions[i]->n_lines; d++)
			add_session(&table, before, now, report->sessions[i], d);
	}
	/* Several tables follow each other, so JSON is one line each. */
	ctl_table_print(&table,
			ctl->format == CTL_FORMAT_JSON ? CTL_FORMAT_LINES
						       : (enum ctl_format)ctl->format,
			stdout);
	ctl_table_fini(&table);
}

/* Prints a line truncated to the terminal's width. */
static void __attribute__((format(printf, 1, 2))) print_line(const char *format, ...)
{
	size_t width = ctl_terminal_width();
	char line[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	printf("%.*s\n", width && width < sizeof(line) ? (int)width : (int)sizeof(line), line);
}

static void
print_head(const struct top_sample *before, const struct top_sample *now)
{
	const Gpupool__AdminReport *report = now->reply->report;
	char used[CTL_VALUE_MAX], total[CTL_VALUE_MAX], up[CTL_VALUE_MAX], contexts[CTL_VALUE_MAX];
	uint64_t since = (uint64_t)time(NULL) - report->started_s;

	print_line("gpupoold %s, process %u, uptime %s: %zu of %u sessions%s", report->version,
		   report->pid, ctl_format_age(since, up), report->n_sessions, report->sessions_max,
		   report->draining ? ", draining" : "");
	for (size_t d = 0; d < report->n_devices; d++) {
		const Gpupool__AdminDevice *device = report->devices[d];
		uint64_t old = before->reply && d < before->reply->report->n_devices
				       ? before->reply->report->devices[d]->gpu_ns
				       : device->gpu_ns;

		print_line("GPU %u: %s: busy %.1f %%, memory %s of %s, contexts %u, %s",
			   device->ordinal, device->name,
			   (double)busy_share(old, device->gpu_ns, now->at_ns - before->at_ns) /
				   100,
			   ctl_format_bytes(device->memory, used),
			   ctl_format_bytes(device->memory_total, total), device->contexts,
			   ctl_format_bytes(device->context_memory, contexts));
	}
	printf("\n");
}

static int
top_sample(const struct ctl *ctl, struct top_sample *top_sample)
{
	top_sample->reply = NULL;
	if (ctl_request_report(ctl, 0, &top_sample->reply))
		return -1;
	top_sample->at_ns = gp_now_ns();
	return 0;
}

static int
options_parse(int count, char **argv, uint64_t *rounds, uint64_t *delay)
{
	for (int i = 0; i < count; i += 2) {
		bool rounds_too = strcmp(argv[i], "-n") == 0;

		if (i + 1 == count || (!rounds_too && strcmp(argv[i], "-d") != 0))
			return ctl_usage_error("top [-n COUNT] [-d SECONDS]");
		if (!ctl_parse_number(argv[i + 1], 1, 86400, rounds_too ? rounds : delay))
			return ctl_fail("top: %s %s: not a number from 1 to 86400 (-d: of seconds)",
					argv[i], argv[i + 1]);
	}
	return 0;
}

int
ctl_top(const struct ctl *ctl, int count, char **argv)
{
	bool screen = isatty(STDOUT_FILENO) && ctl->format == CTL_FORMAT_TABLE;
	struct top_sample before, now;
	uint64_t rounds = UINT64_MAX, delay = 1;
	bool keys = false;
	int r = 0;

	if (options_parse(count, argv, &rounds, &delay) || top_sample(ctl, &before))
		return -1;
	keys = screen && open_keyboard();
	if (keys) {
		(void)signal(SIGINT, signal_handle);
		(void)signal(SIGTERM, signal_handle);
	}
	for (uint64_t i = 0; i < rounds && !wait_for_key(keys, delay); i++) {
		r = top_sample(ctl, &now);
		if (r == 0) {
			if (screen)
				printf(CLEAR);
			if (ctl->format == CTL_FORMAT_TABLE)
				print_head(&before, &now);
			print_sessions(ctl, &before, &now);
			if (!screen && ctl->format == CTL_FORMAT_TABLE && i + 1 < rounds)
				printf("\n");
			(void)fflush(stdout);
		}
		gp_admin_free_reply(before.reply);
		before = now;
		if (r || ferror(stdout))
			break;
	}
	gp_admin_free_reply(before.reply);
	if (keys)
		close_keyboard();
	return r;
}
