/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a worker whose main thread does not answer: a process that is stopped, or that hangs in
 * the driver.  A worker that computes, compiles or waits for the GPU does so in other threads.
 *
 * Threads: the supervisor's main thread.  Times are of gp_now_ms().
 */
#ifndef GPD_HEARTBEAT_H
#define GPD_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct gpd_channel;

/* From an answer to the next ping; and from a ping until the worker counts as hanging.  Together
 * they are below 10 s. */
#define GPD_HEARTBEAT_MS 4000
#define GPD_HEARTBEAT_DUE_MS 5000

struct gpd_heartbeat {
	int64_t next_ms;   /* of the next ping */
	int64_t pinged_ms; /* 0: no answer is outstanding */
	bool hangs;
};

/* In each turn: sends a ping if one is due.  Whether the worker has just begun to count as hanging.
 */
bool gpd_heartbeat_check(struct gpd_heartbeat *heartbeat, struct gpd_channel *channel,
			 int64_t now_ms);

/* The worker has answered.  For how many milliseconds it had not, if it counted as hanging; else 0.
 */
int64_t gpd_heartbeat_answered(struct gpd_heartbeat *heartbeat, int64_t now_ms);

/* This process itself did not run for so long: the worker has as much more time. */
void gpd_heartbeat_extend(struct gpd_heartbeat *heartbeat, int64_t ms);

#endif /* GPD_HEARTBEAT_H */
