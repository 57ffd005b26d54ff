/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests of "gpupool check", implemented in cli/check*.c and called by cli_check() (command.h).
 * Each function tests one aspect of the connection to a pool, and prints one line per test to
 * standard output.
 *
 * Blocking: check_route() waits at most 5 s for each connection or reply; name resolution takes as
 * long as the resolver. check_account() waits as cli_probe_query() (probe.h), and check_session()
 * at most 90 s. The other functions do not wait.
 *
 * Ownership: arguments are borrowed during the call.
 * Threads: called by the main thread only.
 */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/launch_env.h"
#include "cli/probe.h"

#include <stdbool.h>

/* Result of a test. */
enum check_verdict {
	CHECK_OK,
	CHECK_NOTE,    /* not an error; information for the user */
	CHECK_ERROR,   /* fails; printed as "wrong", and counted; the text names the remedy */
	CHECK_SKIPPED, /* not tried because an earlier test failed */
};

/* Prints one line: verdict, subject, formatted text. Increments the number of errors for
 * CHECK_ERROR. */
void check_print(enum check_verdict verdict, const char *subject, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns the number of errors of this process so far. */
int check_get_errors(void);
/* Adds the number of errors that a child process has counted. */
void check_add_errors(int count);

/* check_route.c: tests name resolution, the route, the daemon's protocol and its certificate.
 * Returns whether the daemon can be reached. */
bool check_route(const struct gp_url *url);

/* check_account.c: tests the token file for this daemon. url NULL: its address is not known, and
 * only a token of the environment is tested. */
void check_token(const struct gp_url *url);
/* Queries the daemon and tests credentials, versions, clocks, quotas and session slots. daemon: an
 * element of a struct cli_probe that cli_probe_init() has filled; the reply is stored in it, and
 * cli_probe_free() frees it. Returns whether a session can be opened. */
bool check_account(struct cli_daemon *daemon);

/* check_session.c: loads the client library in a child process and uses it as a program would:
 * session, latency, bandwidth. Waits for the child, whose errors it adds by check_add_errors().
 * SIGALRM ends the child after 90 s, which is reported as an error. launch_env: selected, and
 * applied to the environment (launch_env.h). try_session: earlier tests have shown that a session
 * can be opened; false: only the library is tested. */
void check_session(const struct cli_launch_env *launch_env, bool try_session);

/* check_managed.c: reports how page faults on managed memory are handled on this machine, and the
 * consequences. */
void check_managed(void);

/* check_program.c: reports the libcuda.so.1 that the program `name` loads with `gpupool run`, and
 * without it. Requires that the environment of launch_env has been applied. list_before: the
 * original LD_LIBRARY_PATH, or NULL if it was not set. */
void check_program(const char *name, const struct cli_launch_env *launch_env,
		   const char *list_before);

#endif /* CLI_CHECK_H */
