/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What "gpupool check" finds out, part by part, for cli/check*.c: each part prints one line for
 * each thing that it looks at, on standard output.  One thread.
 */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "cli/choice.h"
#include "cli/look.h"

#include <stdbool.h>

enum check_verdict {
	CHECK_OK,
	CHECK_NOTE,    /* it works, and there is something to know */
	CHECK_ERROR,   /* it does not, and the line says what helps */
	CHECK_SKIPPED, /* not tried: something before is wrong */
};

/* One line: verdict, subject, what is so. */
void check_print(enum check_verdict verdict, const char *subject, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* How many lines were wrong so far; and so many were, in another process. */
int check_get_errors(void);
void check_add_errors(int count);

/* check_route.c: name, route, who answers there, its certificate.  false: nobody can be asked. */
bool check_route(const struct gp_url *url);

/* check_account.c: token, credentials, versions, clocks, quotas, places.  false: nobody is let in.
 */
void check_token(const struct gp_url *url);
bool check_account(struct cli_daemon *daemon);

/* check_session.c: loads the library and uses it as a program would, in a process of its own:
 * session, latency, bandwidth.  tries: a session can be opened. */
void check_session(const struct cli_launch_env *launch_env, bool try_session);

/* check_managed.c: how faults at managed memory are reported, and what that means. */
void check_managed(void);

/* check_program.c: which library this program finds with `gpupool run`, and as things are. */
void check_program(const char *name, const struct cli_launch_env *launch_env,
		   const char *list_before);

#endif /* CLI_CHECK_H */
