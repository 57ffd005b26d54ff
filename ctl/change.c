/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "ctl/command.h"
#include "ctl/save.h"
#include "ctl/value.h"

#include <string.h>

#define SETTINGS_MAX 16
/* Interval in which a drain polls for remaining clients, and the number of clients that it
 * prints. */
#define PROGRESS_NS UINT64_C(500000000)
#define SHOWN_MAX 5

/* Parses gpu=N, which selects the device of the settings. */
static int
parse_gpu(const char *text, Gpupool__AdminSet *set)
{
	uint64_t gpu;

	if (!ctl_parse_number(text, 0, INT32_MAX - 1, &gpu))
		return ctl_fail("invalid gpu=%s: use a number of gpupoolctl device list", text);
	set->device = (int32_t)gpu + 1;
	return 0;
}

static int
fail_setting(const char *text, const char *wrong)
{
	const char *similar = strchr(text, '=') ? ctl_similar_setting(text) : NULL;

	if (strncmp(wrong, "sets none", 9) == 0 && similar)
		return ctl_fail("%s: that %s; did you mean %s=?", text, wrong, similar);
	return ctl_fail("%s: that %s", text, wrong);
}

static int
send_settings(const struct ctl *ctl, Gpupool__AdminSet *set, int count, char **argv)
{
	Gpupool__AdminSetting settings[SETTINGS_MAX], *list[SETTINGS_MAX];
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	set->settings = list;
	for (int i = 0; i < count; i++) {
		const char *wrong;

		if (strncmp(argv[i], "gpu=", 4) == 0) {
			if (parse_gpu(argv[i] + 4, set))
				return -1;
			continue;
		}
		if (set->n_settings == SETTINGS_MAX)
			return ctl_fail("more than %d settings", SETTINGS_MAX);
		wrong = ctl_parse_setting(argv[i], &settings[set->n_settings]);
		if (wrong)
			return fail_setting(argv[i], wrong);
		list[set->n_settings] = &settings[set->n_settings];
		set->n_settings++;
	}
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_SET;
	request.set = set;
	return ctl_request_status(ctl, &request, CTL_TIMEOUT_MS);
}

int
ctl_session_set(const struct ctl *ctl, int count, char **argv)
{
	Gpupool__AdminSet set = GPUPOOL__ADMIN_SET__INIT;

	if (count < 2)
		return ctl_usage_error(
			"session set ID [gpu=N] memory=BYTES | sm=N | priority=P ...");
	return ctl_parse_session(argv[0], &set.session)
		       ? send_settings(ctl, &set, count - 1, argv + 1)
		       : -1;
}

/* Removes --save, at any position before "--". */
static bool
pop_save_option(int *count, char **argv)
{
	bool found = false, ended = false;
	int count_left = 0;

	for (int i = 0; i < *count; i++) {
		if (!ended && strcmp(argv[i], "--") == 0)
			ended = true;
		else if (!ended && strcmp(argv[i], "--save") == 0)
			found = true;
		else
			argv[count_left++] = argv[i];
	}
	*count = count_left;
	return found;
}

int
ctl_tenant_set(const struct ctl *ctl, int count, char **argv)
{
	Gpupool__AdminSet set = GPUPOOL__ADMIN_SET__INIT;
	struct ctl_save save = { 0 };
	bool saves = pop_save_option(&count, argv);
	int r;

	if (count < 2)
		return ctl_usage_error(
			"tenant set NAME [gpu=N] memory=BYTES | sm=N | weight=N | limit=PERCENT | "
			"time-share=PERCENT | priority=P | bandwidth=BYTES | sessions=N ... "
			"[--save]");
	set.tenant = argv[0];
	/* A setting that cannot be saved is not applied either. */
	if (saves && ctl_save_prepare(ctl, argv[0], count - 1, argv + 1, &save))
		return -1;
	r = send_settings(ctl, &set, count - 1, argv + 1);
	if (saves && r == 0)
		r = ctl_save_write(&save);
	ctl_save_drop(&save);
	return r;
}

static int
request_terminate(const struct ctl *ctl, uint64_t session, const char *tenant)
{
	Gpupool__AdminTerminate terminate_request = GPUPOOL__ADMIN_TERMINATE__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	terminate_request.session = session;
	if (tenant)
		terminate_request.tenant = (char *)tenant;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_TERMINATE;
	request.terminate = &terminate_request;
	return ctl_request_status(ctl, &request, CTL_NO_TIMEOUT);
}

int
ctl_session_terminate(const struct ctl *ctl, int count, char **argv)
{
	uint64_t session;

	if (count == 2 && strcmp(argv[0], "--tenant") == 0)
		return request_terminate(ctl, 0, argv[1]);
	if (count == 1 && strncmp(argv[0], "--tenant=", 9) == 0)
		return request_terminate(ctl, 0, argv[0] + 9);
	if (count != 1)
		return ctl_usage_error("session terminate ID | --tenant NAME");
	return ctl_parse_session(argv[0], &session) ? request_terminate(ctl, session, NULL) : -1;
}

static int
request_drain(const struct ctl *ctl, bool undo, bool wait)
{
	Gpupool__AdminDrain drain = GPUPOOL__ADMIN_DRAIN__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	drain.undo = undo;
	drain.wait = wait;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_DRAIN;
	request.drain = &drain;
	return ctl_request_status(ctl, &request, wait ? CTL_NO_TIMEOUT : CTL_TIMEOUT_MS);
}

/* Prints the number of remaining clients, and the first few. */
static void
print_progress(const Gpupool__AdminReport *report)
{
	printf("draining: %zu session%s left:", report->n_sessions,
	       report->n_sessions == 1 ? "" : "s");
	for (size_t i = 0; i < report->n_sessions && i < SHOWN_MAX; i++)
		printf("%s %llu (%s@%s %s)", i ? "," : "",
		       (unsigned long long)report->sessions[i]->id, report->sessions[i]->user,
		       report->sessions[i]->host, report->sessions[i]->program);
	printf("%s\n", report->n_sessions > SHOWN_MAX ? ", ..." : "");
}

/* The same for programs: lists all of them each time. */
static void
list_progress(const Gpupool__AdminReport *report, enum ctl_format format)
{
	static const struct ctl_column columns[] = { { "ID", "id", CTL_NUMBER },
						     { "USER", "user", CTL_TEXT },
						     { "HOST", "host", CTL_TEXT },
						     { "PROGRAM", "program", CTL_TEXT } };
	struct ctl_table table;

	ctl_table_init(&table, columns, COUNT(columns));
	for (size_t i = 0; i < report->n_sessions; i++) {
		ctl_table_number(&table, report->sessions[i]->id);
		ctl_table_text(&table, report->sessions[i]->user);
		ctl_table_text(&table, report->sessions[i]->host);
		ctl_table_text(&table, report->sessions[i]->program);
	}
	ctl_table_print(&table, format == CTL_FORMAT_JSON ? CTL_FORMAT_LINES : format, stdout);
	ctl_table_fini(&table);
}

/* Waits until the last client has disconnected; prints the remaining ones when their number
 * changes. */
static int
drain_wait(const struct ctl *ctl)
{
	size_t before = SIZE_MAX;

	for (;;) {
		Gpupool__AdminReply *reply;
		size_t now;
		bool draining;

		if (ctl_request_report(ctl, 0, &reply))
			return -1;
		now = reply->report->n_sessions;
		draining = reply->report->draining;
		if (draining && now && now != before) {
			if (ctl->format == CTL_FORMAT_TABLE)
				print_progress(reply->report);
			else
				list_progress(reply->report, (enum ctl_format)ctl->format);
			(void)fflush(stdout);
		}
		gp_admin_free_reply(reply);
		if (!draining)
			return ctl_fail("new sessions are admitted again");
		if (!now)
			return request_drain(ctl, false, true);
		before = now;
		gp_sleep_ns(PROGRESS_NS);
	}
}

int
ctl_drain(const struct ctl *ctl, int count, char **argv)
{
	bool undo = false, wait = false;

	for (int i = 0; i < count; i++) {
		if (strcmp(argv[i], "--undo") == 0)
			undo = true;
		else if (strcmp(argv[i], "--wait") == 0)
			wait = true;
		else
			return ctl_usage_error("drain [--wait | --undo]");
	}
	if (undo && wait)
		return ctl_usage_error("drain [--wait | --undo]");
	if (request_drain(ctl, undo, false))
		return -1;
	return wait ? drain_wait(ctl) : 0;
}

int
ctl_reload(const struct ctl *ctl, int count, char **argv)
{
	Gpupool__AdminReload reload = GPUPOOL__ADMIN_RELOAD__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;

	if (count)
		return ctl_usage_error("reload");
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_RELOAD;
	request.reload = &reload;
	return ctl_request_status(ctl, &request, CTL_TIMEOUT_MS);
}
