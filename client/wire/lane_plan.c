/* SPDX-License-Identifier: Apache-2.0 */
#include "client/wire/lane_plan.h"

/* From here on the link's round trip takes longer than anything that threads do for a copy. */
#define LONG_NS 1000000u
/* One connection has a few MiB under way at most: on a link of 25 Gbit/s it fills this much of the
 * round trip. */
#define LANE_FILLS_NS 500000u
/* A network card carries what three bring without a core, and keeps their memory pinned. */
#define RDMA_LANES 3

uint64_t
gpc_lane_copy_min(bool later)
{
	return later ? GPC_LANE_COPY_MIN_LATER : GPC_LANE_COPY_MIN;
}

/* Each lane that is busy all the time keeps a core busy, which shall be half of them at most.  On a
 * long link lanes wait most of the time.  One data lane alone carries no more than lane 0 does. */
unsigned int
gpc_lane_count(unsigned int most, unsigned int cores, uint64_t round_trip_ns, bool rdma)
{
	uint64_t count = round_trip_ns >= LONG_NS ? round_trip_ns / LANE_FILLS_NS : 0;

	if (count < cores / 2)
		count = cores / 2;
	if (rdma)
		count = RDMA_LANES;
	if (count > GPC_LANES_DEFAULT - 1)
		count = GPC_LANES_DEFAULT - 1;
	if (count > most)
		count = most;
	return count < 2 ? 0 : (unsigned int)count;
}
