/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a worker whose main thread does not respond: the process is stopped, or hangs in the
 * driver. Pings are sent over the channel; computing, compiling and waiting for the GPU happen in
 * other threads of the worker and do not delay the reply.
 *
 * Threads: the supervisor's main thread.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_HEARTBEAT_H
#define GPD_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct gpd_channel;

/* Time from a reply to the next ping, and from a ping until the worker counts as hanging. Their sum
 * is below 10 s. */
#define GPD_HEARTBEAT_MS 4000
#define GPD_HEARTBEAT_DUE_MS 5000

struct gpd_heartbeat {
	int64_t next_ms;   /* time of the next ping */
	int64_t pinged_ms; /* time of the unanswered ping; 0: none */
	bool hangs;
};

/* Called in each iteration of the loop: sends a ping if one is due. Returns whether the worker has
 * just started to count as hanging. */
bool gpd_heartbeat_check(struct gpd_heartbeat *heartbeat, struct gpd_channel *channel,
			 int64_t now_ms);

/* Handles a reply. Returns for how many milliseconds the worker did not respond if it counted as
 * hanging, else 0. */
int64_t gpd_heartbeat_answered(struct gpd_heartbeat *heartbeat, int64_t now_ms);

/* Extends the time for a reply by a period in which the supervisor itself did not run. */
void gpd_heartbeat_extend(struct gpd_heartbeat *heartbeat, int64_t ms);

#endif /* GPD_HEARTBEAT_H */
