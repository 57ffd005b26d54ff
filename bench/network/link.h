/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated network link of the program bench/network: forwards connections with an added
 * round-trip time and a limited rate. All connections share the rate.
 *
 * Each connection has two threads, one per direction, which own its descriptors.
 * Threads: link_set() is called before the others; any thread may call the others.
 */
#ifndef GP_BENCH_LINK_H
#define GP_BENCH_LINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Direction: up is to the daemon, down is from the daemon. */
enum link_way {
	LINK_UP,
	LINK_DOWN
};

struct link_options {
	uint64_t rtt_ns;     /* added round-trip time, in nanoseconds */
	double bytes_per_ns; /* bytes per nanosecond in each direction; 0: no limit */
	size_t window;       /* maximum bytes in flight per connection and direction; not 0 */
};

/* Traffic of all connections since the last reset. */
struct link_counts {
	uint64_t trips; /* number of round trips: changes from bytes to the daemon to bytes from it;
			   includes one for each connection */
	uint64_t connections;
	uint64_t bytes[2]; /* by enum link_way */
};

/* Sets the link's properties, which are copied. Called once, before the first connection. */
void link_set(const struct link_options *options);
/* Starts to forward data between two connected sockets and returns without waiting. `near` is
 * connected to the program, `far` to the daemon. The program's data is first delayed by a round
 * trip, for the connection's creation. Returns 0, and the sockets are closed when both directions
 * have ended; or -1 if out of memory, and the caller still owns the sockets. Aborts the process if
 * a thread cannot be started. */
int link_connect(int near, int far) __attribute__((warn_unused_result));
/* Stores a copy of the counters. */
void link_get_counts(struct link_counts *counts);
/* Resets the counters to 0. */
void link_reset_counts(void);

#endif /* GP_BENCH_LINK_H */
