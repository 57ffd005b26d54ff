/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes that come over RDMA.  A queue pair belongs to the process that made it, so the supervisor
 * cannot hand one over: the worker listens itself, knows the tickets of its sessions, and tells the
 * supervisor what has come.  Started by the worker's main thread, before its first session.
 */
#ifndef GPD_LANE_RDMA_H
#define GPD_LANE_RDMA_H

#include <stddef.h>
#include <stdint.h>

/* 0 and the port on which they may come, or -1 and words. */
int gpd_lane_rdma_start(const char *url, uint16_t *port_p, char *error, size_t size);

#endif /* GPD_LANE_RDMA_H */
