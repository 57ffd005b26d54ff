/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the refusal of a connection that requested a lane of a session to the supervisor, which
 * logs a line, within the log budget (log_budget.h) of the peer's address, and counts the refusal
 * (lanes_refused of the ledger) unless the peer is known to be a client of this worker.
 *
 * Threads: any.
 */
#ifndef GPD_LANE_REFUSAL_H
#define GPD_LANE_REFUSAL_H

#include "base/status.h"

#include <stdbool.h>

/* Reports "peer: " and the first 255 bytes of the formatted text. peer: address text as returned by
 * gp_conn_peer(). has_valid_ticket: the peer has sent the ticket (secret) of a session of this
 * worker, and the refusal is not counted. A TLS handshake that failed proves nothing:
 * has_valid_ticket is then false. The strings may be freed on return. */
void gpd_lane_refusal_report(const char *peer, bool has_valid_ticket, const char *format, ...)
	GP_PRINTF(3, 4);

#endif /* GPD_LANE_REFUSAL_H */
