/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts the connections that the supervisor passes to the worker: lane 0 of a session, which
 * starts it, and its data lanes, additional connections for bulk data.
 *
 * An encrypted connection needs a handshake first, which its peer may delay: each handshake has a
 * thread, which then gives the lane to its session. The connection may come from any peer. A failed
 * handshake therefore does not affect the session, and an unfinished one does not reserve the
 * lane's number: the first peer that proves the key gets the lane, and the supervisor is notified
 * at that time (GPD_CHANNEL_LANE_OPENED, channel.h). At most 4 handshakes per lane run; a further
 * one ends the oldest.
 *
 * Ownership: both functions take ownership of the connection, also when the lane is refused.
 * Threads: any thread that does not hold gpd_sessions.lock, unless noted. The functions do not wait
 * for the peer.
 * Errors: not returned. A failed handshake is logged. A data lane that cannot be added, or a lane 0
 * that cannot be started, is logged and ends its session. A lane of a session that does not exist,
 * a second lane 0 and a data lane before lane 0 are closed without a message.
 */
#ifndef GPD_LANE_ACCEPT_H
#define GPD_LANE_ACCEPT_H

#include <stdint.h>

struct gp_conn;
struct gpd_channel_message;

/* Accepts the lane of a message of type GPD_CHANNEL_LANE or GPD_CHANNEL_DATA_LANE (channel.h).
 * Takes ownership of the message's descriptor, and erases the key in the message. A message that is
 * too short is dropped and its descriptor closed. Main thread. */
void gpd_lane_accept(const struct gpd_channel_message *message);

/* Gives a lane that the worker itself has accepted (lane_rdma.h) to its session, after notifying
 * the supervisor. The caller has checked that the peer knows the session's ticket and has received
 * the preamble. session: ID of the session. number: the lane's, less than session->lanes_max; 0
 * starts the session. */
void gpd_lane_accept_conn(uint64_t session, unsigned int number, struct gp_conn *conn);

#endif /* GPD_LANE_ACCEPT_H */
