/* SPDX-License-Identifier: Apache-2.0 */
/* check: why a program finds no GPU, or is slow. */
#include "cli/check.h"

#include "cli/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

void
check_say(enum check_verdict verdict, const char *subject, const char *format, ...)
{
	static const char *const words[] = { "ok", "note", "wrong", "-" };
	va_list arguments;

	wrong += verdict == CHECK_WRONG;
	printf("%-5s  %-11s  ", words[verdict], subject);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	(void)fflush(stdout);
}

int
check_wrong(void)
{
	return wrong;
}

void
check_add_wrong(int count)
{
	wrong += count;
}

static void
check_daemons(const struct cli_choice *choice)
{
	struct cli_look *look = calloc(1, sizeof(*look));
	char error[768];
	bool all = true;

	if (!look) {
		check_say(CHECK_WRONG, "pool", "out of memory");
		return;
	}
	if (cli_look_list(look, error, sizeof(error))) {
		check_say(CHECK_WRONG, "address", "%s", error);
		all = false;
	}
	check_token();
	for (int i = 0; i < look->daemon_count; i++)
		all = check_route(&look->daemons[i].url) && check_account(&look->daemons[i]) && all;
	check_session(choice, all);
	cli_look_free(look);
	free(look);
}

int
cli_check(int count, char **words)
{
	static const struct option options[] = {
		{ "pool", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	struct cli_wish wish = { 0 };
	struct cli_choice choice;
	char *before = getenv("LD_LIBRARY_PATH");
	int option, r;

	while ((option = cli_option(count, words, "+p:", options, "")) != -1) {
		if (option == '?')
			return CLI_WRONG;
		wish.pool = optarg;
	}
	if (count - optind > 1)
		return cli_fail("check takes one program, without its arguments");
	/* The environment is about to become another one. */
	before = before ? strdup(before) : NULL;
	r = cli_choose(&wish, &choice);
	if (r == 0)
		check_say(CHECK_OK, "pool", "%s: %s", choice.whence, choice.pool.url);
	if (r == 0)
		r = cli_choice_apply(&choice);
	if (r == 0) {
		check_daemons(&choice);
		if (optind < count)
			check_program(words[optind], &choice, before);
		r = check_wrong() ? 1 : 0;
	}
	free(before);
	cli_choice_free(&choice);
	return r;
}
