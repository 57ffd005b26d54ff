/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many data lanes suit a session, and which copies go over them.  Numbers only; any thread.
 */
#ifndef GPC_LANE_PLAN_H
#define GPC_LANE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* With lane 0; more than these are opened only if the user says so. */
#define GPC_LANES_DEFAULT 8
/*
 * Copies from this size on: below it one connection is done before the others were of use, and the
 * wake-ups of their threads cost more than they gain.
 */
#define GPC_LANE_COPY_MIN ((uint64_t)512 << 10)
/* Where the caller may go on before the bytes are sent, which it sends itself on lane 0. */
#define GPC_LANE_COPY_MIN_LATER ((uint64_t)256 << 10)

/* round_trip_ns: the shortest that was seen; 0: none yet. */
uint64_t gpc_lane_copy_min(bool later);

/* Data lanes: at most so many, lane 0 not counted. */
unsigned int gpc_lane_count(unsigned int most, unsigned int cores, uint64_t round_trip_ns,
			    bool rdma);

#endif /* GPC_LANE_PLAN_H */
