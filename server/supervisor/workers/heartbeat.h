/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a worker whose main thread does not respond: the process is stopped, or hangs in the
 * driver. Pings are sent over the channel; computing, compiling and waiting for the GPU happen in
 * other threads of the worker and do not delay the reply.
 *
 * The state initialized to zeros: the first ping is due at once. Nothing has to be freed.
 *
 * Threads: the supervisor's main thread.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_HEARTBEAT_H
#define GPD_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct gpd_channel;

/* Time from a reply to the next ping, and from a ping until the worker counts as hanging: a hang is
 * detected after less than 10 s. */
#define GPD_HEARTBEAT_MS 4000
#define GPD_HEARTBEAT_DUE_MS 5000

/* State of one worker. */
struct gpd_heartbeat {
	int64_t next_ms;   /* time at which the next ping is due */
	int64_t pinged_ms; /* time at which the unanswered ping was sent; 0: there is none */
	bool hangs;        /* the worker counts as hanging */
};

/* Called in each iteration of the loop: sends a ping without blocking if one is due. channel: of
 * the worker, open, and the worker is past STARTING (worker_process.h). Returns true once per hang:
 * in the call in which the worker starts to count as hanging. */
bool gpd_heartbeat_check(struct gpd_heartbeat *heartbeat, struct gpd_channel *channel,
			 int64_t now_ms);

/* Handles GPD_CHANNEL_PONG. Returns for how many milliseconds the worker did not respond if it
 * counted as hanging, else 0. */
int64_t gpd_heartbeat_answered(struct gpd_heartbeat *heartbeat, int64_t now_ms);

/* Extends the time for the pending reply by ms, a time during which the supervisor itself did not
 * run. */
void gpd_heartbeat_extend(struct gpd_heartbeat *heartbeat, int64_t ms);

#endif /* GPD_HEARTBEAT_H */
