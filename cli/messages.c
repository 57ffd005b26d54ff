/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of gpupool on standard error, and parsing of its commands' options. */
#include "base/edit_distance.h"
#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void
message_print(const char *kind, const char *format, va_list arguments)
{
	char text[2048];

	(void)fflush(stdout);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	fprintf(stderr, "gpupool: %s%s\n", kind, text);
}

int
cli_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message_print("", format, arguments);
	va_end(arguments);
	return CLI_FAILED;
}

void
cli_warn(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	message_print("warning: ", format, arguments);
	va_end(arguments);
}

const char *
cli_suggestion(const char *written, const char *const *names, int count)
{
	static char text[128];
	const char *found = gp_suggest(written, names, count);

	text[0] = '\0';
	if (found)
		(void)snprintf(text, sizeof(text), "; did you mean %s?", found);
	return text;
}

/* Appends "; did you mean --NAME?", or else the advice, which begins with a semicolon itself. */
static int
fail_unknown(const char *name, const char *command, const char *found, const char *advice)
{
	char meant[128] = "";

	if (found)
		(void)snprintf(meant, sizeof(meant), "; did you mean --%s?", found);
	return cli_fail("unknown option --%s of \"gpupool %s\"%s%s", name, command, meant,
			found ? "" : advice);
}

static int
fail_option(char **argv, int at, const struct option *options, const char *advice, bool missing)
{
	const char *names[16], *word = argv[at];
	char name[64];
	int count = 0;

	if (strncmp(word, "--", 2) != 0 && missing)
		return cli_fail("-%c: its value is missing", optopt);
	if (strncmp(word, "--", 2) != 0)
		return cli_fail("unknown option -%c of \"gpupool %s\"%s", optopt ? optopt : word[1],
				argv[0], advice);
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (; options[count].name && count < (int)COUNT(names); count++) {
		names[count] = options[count].name;
		if (strcmp(options[count].name, name) != 0)
			continue;
		return cli_fail(options[count].has_arg ? "--%s: its value is missing"
						       : "--%s takes no value",
				name);
	}
	return fail_unknown(name, argv[0], gp_suggest(name, names, count), advice);
}

int
cli_option(int count, char **argv, const char *letters, const struct option *options,
	   const char *advice)
{
	int at = optind ? optind : 1, r;

	opterr = 0;
	optopt = 0;
	r = getopt_long(count, argv, letters, options, NULL);
	if (r != '?' && r != ':')
		return r;
	(void)fail_option(argv, at, options, advice, strchr(letters, optopt) && optopt);
	return '?';
}
