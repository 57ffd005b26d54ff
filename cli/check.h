/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of "gpupool check", for cli/check*.c. Each part tests one aspect of the connection to a
 * pool, and prints one line per test to standard output.
 *
 * Threads: one.
 */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/launch_env.h"
#include "cli/probe.h"

#include <stdbool.h>

enum check_verdict {
	CHECK_OK,
	CHECK_NOTE,    /* works, with information for the user */
	CHECK_ERROR,   /* fails; the line contains the remedy */
	CHECK_SKIPPED, /* not tried because an earlier test failed */
};

/* Prints one line: verdict, subject, text. Counts CHECK_ERROR. */
void check_print(enum check_verdict verdict, const char *subject, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns the number of errors so far; the other adds those of another process. */
int check_get_errors(void);
void check_add_errors(int count);

/* check_route.c: tests name resolution, the route, the daemon's protocol and its certificate.
 * Returns false if the daemon cannot be reached. */
bool check_route(const struct gp_url *url);

/* check_account.c: tests the token file; then queries the daemon, and tests credentials, versions,
 * clocks, quotas and session slots. check_account() returns false if no session is possible. */
void check_token(const struct gp_url *url);
bool check_account(struct cli_daemon *daemon);

/* check_session.c: loads the client library in a child process and uses it as a program would:
 * session, latency, bandwidth. try_session: a session can be expected to open. */
void check_session(const struct cli_launch_env *launch_env, bool try_session);

/* check_managed.c: reports how page faults on managed memory are handled on this machine, and the
 * consequences. */
void check_managed(void);

/* check_program.c: reports which libcuda.so.1 the program loads with `gpupool run`, and without it.
 * list_before: the original LD_LIBRARY_PATH, or NULL. */
void check_program(const char *name, const struct cli_launch_env *launch_env,
		   const char *list_before);

#endif /* CLI_CHECK_H */
