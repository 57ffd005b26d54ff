/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts the connections that the supervisor passes to the worker: lane 0 of a session, which
 * starts it, and its data lanes.
 *
 * An encrypted connection needs a handshake first, which its peer may delay: each has a thread
 * until the handshake is done and the lane is given to its session. The connection may come from
 * any peer. A failed handshake therefore does not affect the session, and an unfinished one does
 * not block the lane's number: the first peer that proves the key gets the lane. The supervisor is
 * notified then.
 *
 * Ownership: both functions take ownership of the connection, also when the lane is refused.
 * Threads: any, unless noted.
 * Errors: not returned. A refusal is logged; a data lane that cannot be added, or a lane 0 that
 * cannot be started, ends its session.
 */
#ifndef GPD_LANE_ACCEPT_H
#define GPD_LANE_ACCEPT_H

#include <stdint.h>

struct gp_conn;
struct gpd_channel_message;

/* Main thread: handles a message of type GPD_CHANNEL_LANE or GPD_CHANNEL_DATA_LANE; owns its
 * descriptor. */
void gpd_lane_accept(const struct gpd_channel_message *message);

/* Any thread: gives a lane that was accepted by the worker itself to its session, after notifying
 * the supervisor. Takes ownership of the connection. */
void gpd_lane_accept_conn(uint64_t session, unsigned int number, struct gp_conn *conn);

#endif /* GPD_LANE_ACCEPT_H */
