/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes over RDMA. A queue pair belongs to the process that created it, so the supervisor cannot
 * pass one on: the worker listens itself, checks the tickets of its sessions, and notifies the
 * supervisor of accepted lanes.
 *
 * Ownership: accepted connections are passed to lane_accept.h.
 * Threads: to be started by the worker's main thread before its first session; a thread of its own
 * accepts lanes.
 */
#ifndef GPD_LANE_RDMA_H
#define GPD_LANE_RDMA_H

#include <stddef.h>
#include <stdint.h>

/* Listens at the URL. Returns 0 and the port, or -1 with one line in error. */
int gpd_lane_rdma_start(const char *url, uint16_t *port_p, char *error, size_t size);

#endif /* GPD_LANE_RDMA_H */
