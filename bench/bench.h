/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for the benchmark programs of the transport. */
#ifndef GP_BENCH_H
#define GP_BENCH_H

#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Exits with status 1 and a message about the operation `what` if r is not 0. `conn` provides the
 * error text; NULL: none. */
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
