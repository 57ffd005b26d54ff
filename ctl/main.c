/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpupoolctl: monitors and controls a gpupoold of this machine through its admin socket.
 *
 * A command uses one connection per request. Commands are given as arguments, or as lines of
 * standard input.
 */
#include "ctl/command.h"
#include "protocol/standard_fds.h"

#include <argp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORDS_MAX 32

/* argp looks for a variable of this name. */
__attribute__((visibility("default"))) const char *argp_program_version =
	"gpupoolctl " GPUPOOLCTL_VERSION;

static const struct argp_option options[] = {
	{ .name = "socket",
	  .key = 's',
	  .arg = "PATH",
	  .doc = "The daemon's admin socket. Default: /run/gpupool/admin.sock for root, "
		 "gpupool/admin.sock below XDG_RUNTIME_DIR for others" },
	{ .name = "format",
	  .key = 'f',
	  .arg = "FORMAT",
	  .doc = "table (the default), csv or json; for programs sizes are bytes and times "
		 "seconds" },
	{ .name = NULL, .key = 'h', .doc = "Give this help list" },
	{ 0 },
};

static const char args_doc[] = "COMMAND [ARGUMENT...]";

static const char doc[] =
	"Monitor and control a gpupoold of this machine."
	"\vCommands:\n"
	"  status                       the daemon in a few lines\n"
	"  device list                  GPUs and their use\n"
	"  device enable GPU            use a sick GPU again, after its repair\n"
	"  session list                 sessions, their devices and memory\n"
	"  session show ID              details of a session\n"
	"  session set ID NAME=VALUE... memory, sm, priority\n"
	"  session terminate ID | --tenant NAME\n"
	"                               end it; returns when its GPU work has ended\n"
	"  tenant list                  tenants, their limits and use\n"
	"  tenant set TENANT NAME=VALUE... [--save]\n"
	"                               memory, sm, weight, limit, time-share,\n"
	"                               priority, bandwidth, sessions\n"
	"  worker list                  worker processes and their sessions\n"
	"  worker replace PID [--terminate]\n"
	"                               replace the worker that gets new sessions\n"
	"  quarantine list              programs that get workers of their own\n"
	"  quarantine end ID            let a program share workers again\n"
	"  drain [--wait | --undo]      admit no new sessions; wait for the last one\n"
	"  reload                       read the configuration file again\n"
	"  top [-n COUNT] [-d SECONDS]  live view; q ends it\n"
	"  usage [--since 30d] [--by tenant|session]\n"
	"                               use of GPUs, from the usage records\n"
	"  help [COMMAND]               more about a command\n"
	"\n"
	"Without a daemon:\n"
	"  doctor                       check the pool's files and daemon\n"
	"  cert init HOST...            create an authority and a daemon's certificate\n"
	"  cert client NAME             create a certificate for a client\n"
	"  cert show [FILE], cert list  owner and expiry of certificates\n"
	"  cert revoke NAME|FILE|SERIAL revoke one and end its sessions\n"
	"  cert revoked, cert crl       list revoked certificates; sign the CRL again\n"
	"  token create TENANT [--expires 30d] [--comment TEXT] [-o FILE]\n"
	"                               create a token for clients of a tenant\n"
	"  token list                   tokens, their tenants and expiry\n"
	"  token revoke ID              revoke a token and end its sessions\n"
	"\n"
	"Without a command, commands are read from standard input, one per line.";

static bool
parse_format(const char *text, int *format)
{
	static const char *const names[] = { "table", "csv", "json" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			*format = i;
			return true;
		}
	}
	return false;
}

struct command_line {
	struct ctl ctl;
	int count;
	char **words;
};

static error_t
parse_option(int key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;

	switch (key) {
	case 's':
		line->ctl.socket = arg;
		return 0;
	case 'f':
		if (!parse_format(arg, &line->ctl.format))
			argp_failure(state, 1, 0, "--format: \"%s\" is not one of table, csv, json",
				     arg);
		return 0;
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
		return 0;
	case ARGP_KEY_ARGS:
		/* Options after the command belong to it. */
		line->count = state->argc - state->next;
		line->words = state->argv + state->next;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Removes --format and -f after the command. Returns -1 if the value is invalid. */
static int
pop_format_option(struct ctl *ctl, int *count, char **words)
{
	bool ended = false;
	int count_left = 0;

	for (int i = 0; i < *count; i++) {
		const char *value = NULL;

		ended = ended || strcmp(words[i], "--") == 0;
		if (!ended && strncmp(words[i], "--format=", 9) == 0)
			value = words[i] + 9;
		else if (!ended &&
			 (strcmp(words[i], "--format") == 0 || strcmp(words[i], "-f") == 0))
			value = i + 1 < *count ? words[++i] : "";
		if (!value)
			words[count_left++] = words[i];
		else if (!parse_format(value, &ctl->format))
			return ctl_fail("--format: \"%s\" is not one of table, csv, json", value);
	}
	*count = count_left;
	return 0;
}

/* Removes the first "--". */
static void
pop_end_of_options(int *count, char **words)
{
	int i = 0;

	while (i < *count && strcmp(words[i], "--") != 0)
		i++;
	if (i == *count)
		return;
	memmove(words + i, words + i + 1, (size_t)(*count - i - 1) * sizeof(*words));
	(*count)--;
}

/* Returns whether --help or -h follows a command; count is set to the number of words before it. */
static bool
wants_help(int *count, char **words)
{
	for (int i = 1; i < *count && strcmp(words[i], "--") != 0; i++) {
		if (strcmp(words[i], "--help") != 0 && strcmp(words[i], "-h") != 0)
			continue;
		*count = i;
		return true;
	}
	return false;
}

/* Replaces the old name of a command, which works for one release. */
static void
old_name_replace(int count, char **words)
{
	static char session[] = "session";

	if (count > 0 && strcmp(words[0], "client") == 0)
		words[0] = session;
}

/* more: other commands may follow. */
static int
command_execute(const struct ctl *ctl, bool more, int count, char **words)
{
	static const struct {
		const char *word;
		ctl_command *command;
		bool plain; /* has no options of its own, so "--" is removed here */
	} commands[] = {
		{ "cert", ctl_cert, false },
		{ "device", ctl_device, true },
		{ "doctor", ctl_doctor, false },
		{ "drain", ctl_drain, false },
		{ "quarantine", ctl_quarantine, true },
		{ "reload", ctl_reload, true },
		{ "session", ctl_session, true },
		{ "status", ctl_status, true },
		{ "tenant", ctl_tenant, true },
		{ "token", ctl_token, false },
		{ "top", ctl_top, false },
		{ "usage", ctl_usage_records, false },
		{ "worker", ctl_worker, true },
	};
	struct ctl own = *ctl;
	ctl_command *command = NULL;
	const char *similar;
	int r;

	if (pop_format_option(&own, &count, words))
		return -1;
	if (more && own.format == CTL_FORMAT_JSON)
		own.format = CTL_FORMAT_LINES;
	if (count == 0)
		return ctl_fail("no command: gpupoolctl --help lists the commands");
	old_name_replace(count, words);
	if (strcmp(words[0], "help") == 0) {
		old_name_replace(count - 1, words + 1);
		return ctl_help(&own, count - 1, words + 1);
	}
	if (wants_help(&count, words))
		return ctl_help(&own, count > 2 ? 2 : count, words);
	for (size_t i = 0; !command && i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(words[0], commands[i].word) != 0)
			continue;
		command = commands[i].command;
		if (commands[i].plain)
			pop_end_of_options(&count, words);
	}
	similar = command ? NULL : ctl_similar_command(words[0]);
	if (similar)
		return ctl_fail("unknown command \"%s\"; did you mean %s? gpupoolctl help lists "
				"the commands",
				words[0], similar);
	if (!command)
		return ctl_fail("unknown command \"%s\": gpupoolctl help lists the commands",
				words[0]);
	r = command(&own, count - 1, words + 1);
	if (fflush(stdout) != 0 || ferror(stdout))
		return ctl_fail("cannot write to standard output");
	return r;
}

/* Returns -1 if a command failed; the others are executed nevertheless. */
static int
commands_execute(const struct ctl *ctl, FILE *file)
{
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	while (getline(&line, &size, file) >= 0) {
		char *words[WORDS_MAX], *rest = line, *word;
		int count = 0;

		while (count < WORDS_MAX &&
		       (word = strtok_r(count ? NULL : line, " \t\r\n", &rest)))
			words[count++] = word;
		if (count == WORDS_MAX)
			r = ctl_fail("a command of %d words and more", WORDS_MAX);
		else if (count && command_execute(ctl, true, count, words))
			r = -1;
	}
	free(line);
	return r;
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse_option, .args_doc = args_doc, .doc = doc
	};
	struct command_line line = { 0 };
	int r;

	if (gp_stdio_ensure_open())
		return 1;
	argp_err_exit_status = 1;
	(void)signal(SIGPIPE, SIG_IGN);
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &line))
		return 1;
	if (line.count)
		r = command_execute(&line.ctl, false, line.count, line.words);
	else if (isatty(STDIN_FILENO))
		r = ctl_fail("no command: gpupoolctl --help lists the commands");
	else
		r = commands_execute(&line.ctl, stdin);
	return r ? 1 : 0;
}
