/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy for data lanes (the connections for large copies, lane.h): how many a session opens, and
 * which copies use them.
 *
 * Threads: any; pure functions.
 * Units: sizes in bytes, times in nanoseconds.
 */
#ifndef GPC_LANE_PLAN_H
#define GPC_LANE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of lanes that is used by default, including lane 0, the connection that carries
 * the calls. More are opened only on the user's request. */
#define GPC_LANES_DEFAULT 8
/*
 * Minimum size of a copy that uses the lanes. Smaller copies finish on one connection before other
 * lanes could help, and waking the threads of other lanes costs more than it gains.
 */
#define GPC_LANE_COPY_MIN ((uint64_t)512 << 10)
/* Minimum size of a copy that uses the lanes if its caller may return before the data is sent; on
 * lane 0 the caller would have to send the data itself. */
#define GPC_LANE_COPY_MIN_LATER ((uint64_t)256 << 10)

/* Returns the minimum size of a copy that uses the lanes. later: the caller may return before the
 * data is sent. */
uint64_t gpc_lane_copy_min(bool later);

/* Returns the number of data lanes to open, not counting lane 0. It is 0, or from 2 to the lower of
 * `most` and GPC_LANES_DEFAULT - 1. cores: number of processors of this machine. round_trip_ns:
 * shortest round-trip time measured so far; 0: none. rdma: the lanes use RDMA; cores and
 * round_trip_ns are then ignored. */
unsigned int gpc_lane_count(unsigned int most, unsigned int cores, uint64_t round_trip_ns,
			    bool rdma);

#endif /* GPC_LANE_PLAN_H */
