/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the refusal of a connection that requested a lane of a session: logs a line, within the
 * log budget of the peer's address, and counts the refusal.
 *
 * Threads: any.
 */
#ifndef GPD_LANE_REFUSAL_H
#define GPD_LANE_REFUSAL_H

#include "base/status.h"

#include <stdbool.h>

/* peer: as from gp_conn_peer(). knows: the peer has shown the ticket of a session of this worker;
 * its refusal is not counted. */
void gpd_lane_refusal_report(const char *peer, bool knows, const char *format, ...) GP_PRINTF(3, 4);

#endif /* GPD_LANE_REFUSAL_H */
