/* SPDX-License-Identifier: Apache-2.0 */
/* check: why a program finds no GPU, or is slow. */
#include "cli/check.h"

#include "cli/command.h"
#include "client/base/config.h"

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

/* What answers, as the only pool of what is tried from now on. */
static void
take_part(const struct cli_look *look, const bool *good)
{
	char text[GP_URL_TEXT_MAX], *list = NULL;
	size_t size;
	FILE *stream = open_memstream(&list, &size);

	for (int i = 0; stream && i < look->url_count; i++) {
		if (!good[cli_look_find(look, &look->urls[i])])
			continue;
		gp_url_format(&look->urls[i], text, sizeof(text));
		fprintf(stream, "%s%s", ftell(stream) > 0 ? "," : "", text);
	}
	if (stream && fclose(stream) == 0)
		(void)setenv("REMOTE_GPU", list, 1);
	free(list);
}

static void
check_daemons(const struct cli_choice *choice)
{
	struct cli_look *look = calloc(1, sizeof(*look));
	bool good[CLI_DAEMONS_MAX];
	char error[768];
	int count, all;

	if (!look) {
		check_say(CHECK_WRONG, "pool", "out of memory");
		return;
	}
	all = cli_look_list(look, error, sizeof(error)) ? 0 : look->daemon_count;
	if (all == 0)
		check_say(CHECK_WRONG, "address", "%s", error);
	if (all == 0)
		check_token(NULL);
	count = 0;
	for (int i = 0; i < all; i++) {
		struct cli_daemon *daemon = &look->daemons[i];

		if (all > 1)
			check_say(CHECK_OK, "address", "%d of %d: %s", i + 1, all, daemon->text);
		/* The environment's is one for all. */
		if (i == 0 || !gpc_config_tls())
			check_token(&daemon->url);
		good[i] = check_route(&daemon->url) && check_account(daemon);
		count += good[i];
	}
	if (count > 0 && count < all) {
		check_say(CHECK_WRONG, "pool",
			  "%d of %d daemons can be used, and a program needs all of them; what "
			  "follows is of %s alone",
			  count, all, count == 1 ? "that one" : "those");
		take_part(look, good);
	}
	check_session(choice, count > 0);
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
		check_managed();
		if (optind < count)
			check_program(words[optind], &choice, before);
		r = check_wrong() ? 1 : 0;
	}
	free(before);
	cli_choice_free(&choice);
	return r;
}
