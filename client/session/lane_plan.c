/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/lane_plan.h"

/* Above this round-trip time, the link takes longer than any work of the threads for a copy. */
#define LONG_NS 1000000u
/* One connection has at most a few MiB in flight, which fills this part of the round trip on a link
 * of 25 Gbit/s. */
#define LANE_FILLS_NS 500000u
/* A network card transfers the data of three lanes without using a core, and their memory stays
 * pinned. */
#define RDMA_LANES 3

uint64_t
gpc_lane_copy_min(bool later)
{
	return later ? GPC_LANE_COPY_MIN_LATER : GPC_LANE_COPY_MIN;
}

/* Each busy lane occupies a core, and lanes should occupy at most half of the cores. On a long link
 * lanes wait most of the time. A single data lane would carry no more than lane 0 does. */
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
