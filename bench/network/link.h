/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link that bench/network makes: connections that are passed on, later and no faster than told.
 * Two threads a connection, one each way, which own its descriptors.  Any thread may call.
 */
#ifndef GP_BENCH_LINK_H
#define GP_BENCH_LINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum link_way {
	LINK_UP,
	LINK_DOWN
}; /* to the daemon, from it */

struct link_options {
	uint64_t rtt_ns;
	double bytes_per_ns; /* 0: no limit */
	size_t window;       /* bytes held of a connection, each way */
};

struct link_counts {
	uint64_t trips; /* bytes from the daemon that follow bytes to it */
	uint64_t connections;
	uint64_t bytes[2];
};

/* Once, before the first connection. */
void link_set(const struct link_options *options);
/* Passes on between these two, which it closes when both ways have ended.  0; -1: nothing is taken.
 */
int link_connect(int near, int far) __attribute__((warn_unused_result));
void link_get_counts(struct link_counts *counts);
/* As if nothing had been passed on. */
void link_forget_counts(void);
uint64_t link_now(void);

#endif /* GP_BENCH_LINK_H */
