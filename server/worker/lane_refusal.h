/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The refusal of somebody who wants a lane of a session and may not have it: a line of the log, out
 * of the budget of the address that it came from, and a count.  Worker; any thread.
 */
#ifndef GPD_LANE_REFUSAL_H
#define GPD_LANE_REFUSAL_H

#include "base/status.h"

#include <stdbool.h>

/* peer as gp_conn_peer() says it; knows: it has shown the ticket of a session of this worker. */
void gpd_lane_refusal_report(const char *peer, bool knows, const char *format, ...) GP_PRINTF(3, 4);

#endif /* GPD_LANE_REFUSAL_H */
