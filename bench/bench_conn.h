/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of results, for the benchmark programs of the transport. */
#ifndef GP_BENCH_CONN_H
#define GP_BENCH_CONN_H

#include "bench/bench.h"
#include "transport/transport.h"

#include <stdio.h>

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

#endif /* GP_BENCH_CONN_H */
