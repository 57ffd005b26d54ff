/* SPDX-License-Identifier: Apache-2.0 */
/* What the measuring programs of the transport share. */
#ifndef GP_BENCH_H
#define GP_BENCH_H

#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A measurement that fails says why and is over. */
static inline void
must(int r, const char *what, struct gp_conn *conn)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: status %d, %s\n", what, r, conn ? gp_conn_error(conn) : "");
	exit(1);
}

/* In seconds. */
static inline double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif /* GP_BENCH_H */
