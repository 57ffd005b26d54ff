/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who comes to the worker for a lane and is refused.  The supervisor hears of it, which knows what
 * else came from there: it counts, and has the line of the log, or leaves it out.  Worker; any
 * thread, without the worker's lock.
 */
#ifndef GPD_LANE_REFUSAL_H
#define GPD_LANE_REFUSAL_H

#include "protocol/status.h"

#include <stdbool.h>

/* peer as gp_conn_peer() says it; knows: it has shown the ticket of a session of this worker. */
void gpd_lane_refusal_report(const char *peer, bool knows, const char *format, ...) GP_PRINTF(3, 4);

#endif /* GPD_LANE_REFUSAL_H */
