/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the benchmark programs that use a transport directly (transport.h). */
#ifndef GP_BENCH_H
#define GP_BENCH_H

#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Checks the result r of an operation. If it is not 0, prints the operation's name, r and the error
 * text of `conn` (NULL: none), and exits with status 1. */
static inline void
must(int r, const char *what, struct gp_conn *conn)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: status %d, %s\n", what, r, conn ? gp_conn_error(conn) : "");
	exit(1);
}

/* Returns the monotonic time in seconds. */
static inline double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif /* GP_BENCH_H */
