/* SPDX-License-Identifier: Apache-2.0 */
/* check: finds out why a program finds no GPU, or is slow. */
#include "cli/check.h"

#include "cli/command.h"
#include "client/base/config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int error_count;

void
check_print(enum check_verdict verdict, const char *subject, const char *format, ...)
{
	static const char *const words[] = { "ok", "note", "wrong", "-" };
	va_list arguments;

	error_count += verdict == CHECK_ERROR;
	printf("%-5s  %-11s  ", words[verdict], subject);
	va_start(arguments, format);
	(void)vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
	(void)fflush(stdout);
}

int
check_get_errors(void)
{
	return error_count;
}

void
check_add_errors(int count)
{
	error_count += count;
}

/* Restricts the following tests to the daemons that can be used. */
static void
pool_restrict(const struct cli_probe *probe, const bool *good)
{
	char text[GP_URL_TEXT_MAX], *list = NULL;
	size_t size;
	FILE *stream = open_memstream(&list, &size);

	for (int i = 0; stream && i < probe->url_count; i++) {
		if (!good[cli_probe_find(probe, &probe->urls[i])])
			continue;
		gp_url_format(&probe->urls[i], text, sizeof(text));
		fprintf(stream, "%s%s", ftell(stream) > 0 ? "," : "", text);
	}
	if (stream && fclose(stream) == 0)
		(void)setenv("REMOTE_GPU", list, 1);
	free(list);
}

static void
check_daemons(const struct cli_launch_env *launch_env)
{
	struct cli_probe *probe = calloc(1, sizeof(*probe));
	bool good[CLI_DAEMONS_MAX];
	char error[768];
	int count, all;

	if (!probe) {
		check_print(CHECK_ERROR, "pool", "out of memory");
		return;
	}
	all = cli_probe_init(probe, error, sizeof(error)) ? 0 : probe->daemon_count;
	if (all == 0)
		check_print(CHECK_ERROR, "address", "%s", error);
	if (all == 0)
		check_token(NULL);
	count = 0;
	for (int i = 0; i < all; i++) {
		struct cli_daemon *daemon = &probe->daemons[i];

		if (all > 1)
			check_print(CHECK_OK, "address", "%d of %d: %s", i + 1, all, daemon->text);
		/* A token from the environment is the same for all daemons. */
		if (i == 0 || !gpc_config_has_credentials())
			check_token(&daemon->url);
		good[i] = check_route(&daemon->url) && check_account(daemon);
		count += good[i];
	}
	if (count > 0 && count < all) {
		check_print(CHECK_ERROR, "pool",
			    "%d of %d daemons can be used, but a program needs all of them; the "
			    "following checks are of %s only",
			    count, all, count == 1 ? "that one" : "those");
		pool_restrict(probe, good);
	}
	check_session(launch_env, count > 0);
	cli_probe_free(probe);
	free(probe);
}

int
cli_check(int count, char **words)
{
	static const struct option options[] = {
		{ "pool", required_argument, NULL, 'p' },
		{ NULL, 0, NULL, 0 },
	};
	struct cli_launch_options launch_options = { 0 };
	struct cli_launch_env launch_env;
	char *before = getenv("LD_LIBRARY_PATH");
	int option, r;

	while ((option = cli_option(count, words, "+p:", options, "")) != -1) {
		if (option == '?')
			return CLI_FAILED;
		launch_options.pool = optarg;
	}
	if (count - optind > 1)
		return cli_fail("check takes one program, without its arguments");
	/* cli_launch_env_apply() changes the environment. */
	before = before ? strdup(before) : NULL;
	r = cli_launch_env_select(&launch_options, &launch_env);
	if (r == 0)
		check_print(CHECK_OK, "pool", "%s: %s", launch_env.pool_origin,
			    launch_env.pool.url);
	if (r == 0)
		r = cli_launch_env_apply(&launch_env);
	if (r == 0) {
		check_daemons(&launch_env);
		check_managed();
		if (optind < count)
			check_program(words[optind], &launch_env, before);
		r = check_get_errors() ? 1 : 0;
	}
	free(before);
	cli_launch_env_free(&launch_env);
	return r;
}
