/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that the supervisor hands to the worker: lane 0 of a session, which starts it, and
 * its data lanes.
 *
 * An encrypted one needs a handshake first, for which its peer may take its time: each has a thread
 * until that is done, which then gives it to its session.  Anybody may have sent it, so one
 * that fails costs its session nothing, and one that is not done keeps nobody from the lane's
 * number: who has the key first has the lane, and the supervisor learns of it then.
 */
#ifndef GPD_ACCEPT_H
#define GPD_ACCEPT_H

#include <stdint.h>

struct gp_conn;
struct gpd_channel_message;

/* Main thread: of type GPD_CHANNEL_LANE, GPD_CHANNEL_DATA_LANE. */
void gpd_lane_accept(const struct gpd_channel_message *message);

/* Any thread: a lane that has come by itself; takes the connection over. */
void gpd_lane_accept_conn(uint64_t session, unsigned int number, struct gp_conn *conn);

#endif /* GPD_ACCEPT_H */
