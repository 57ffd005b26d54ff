/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated network link of bench/network: forwards connections with an added round-trip time and a
 * limited rate. Each connection has two threads, one per direction, which own its descriptors.
 *
 * Threads: any.
 */
#ifndef GP_BENCH_LINK_H
#define GP_BENCH_LINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum link_way {
	LINK_UP,
	LINK_DOWN
}; /* to the daemon, from the daemon */

struct link_options {
	uint64_t rtt_ns;
	double bytes_per_ns; /* 0: no limit */
	size_t window;       /* maximum bytes in flight per connection and direction */
};

struct link_counts {
	uint64_t trips; /* round trips: bytes from the daemon that follow bytes to it */
	uint64_t connections;
	uint64_t bytes[2];
};

/* Sets the link's properties; called once, before the first connection. */
void link_set(const struct link_options *options);
/* Forwards data between two descriptors and closes them when both directions have ended. Returns 0,
 * or -1 on failure; the descriptors then remain the caller's. */
int link_connect(int near, int far) __attribute__((warn_unused_result));
void link_get_counts(struct link_counts *counts);
/* Resets the counters. */
void link_forget_counts(void);

/* Returns the monotonic time in nanoseconds. */
uint64_t link_now(void);

#endif /* GP_BENCH_LINK_H */
