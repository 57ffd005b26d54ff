/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes (connections of sessions) over RDMA. A queue pair belongs to the process that created it,
 * so the supervisor cannot pass one on: the worker listens itself, checks the tickets (secrets) of
 * its sessions, and notifies the supervisor of accepted lanes.
 *
 * While a lane is being accepted, and afterwards, its bit in session->lanes_accepted
 * (session/session.h) is set, so that a second peer cannot get it; the bit is cleared if the
 * connection fails first.
 * Ownership: accepted connections are passed to gpd_lane_accept_conn() (lane_accept.h).
 * Threads: to be started once by the worker's main thread, before its first session; a thread of
 * its own accepts lanes until the process ends.
 */
#ifndef GPD_LANE_RDMA_H
#define GPD_LANE_RDMA_H

#include <stddef.h>
#include <stdint.h>

/* Listens on any free port of the URL's address and starts the thread. Returns 0 and sets *port_p
 * to the port. Returns -1 if it cannot: error contains one line of text of at most size bytes,
 * *port_p is unchanged, and the worker cannot start. The strings may be freed on return. */
int gpd_lane_rdma_start(const char *url, uint16_t *port_p, char *error, size_t size);

#endif /* GPD_LANE_RDMA_H */
