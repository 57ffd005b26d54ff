/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of what the process sent and waited for; GPUPOOL_LOG=stats prints them at exit.
 * Process-wide; any thread.
 */
#ifndef GPC_STATS_H
#define GPC_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>

/* A call was appended; by the holder of the send lock. */
void gpc_stats_call(uint16_t number, bool posted);
void gpc_stats_sent(size_t data, const struct iovec *bulk, int bulk_count);
void gpc_stats_received(size_t size);

/* The application waits for the network: a connection, an answer. */
void gpc_stats_wait(void);
/* A kernel is launched; the first one is remembered. */
void gpc_stats_launch(void);

struct gpc_stats {
	uint64_t waits;
	uint64_t waits_before_launch; /* all, while there was no launch */
	uint64_t posted, messages;
	uint64_t bytes_sent, bytes_received;
};

void gpc_stats_get(struct gpc_stats *stats);
void gpc_stats_print(FILE *file);

/* Of a wire call, for logs. */
const char *gpc_call_name(uint16_t number);

#endif /* GPC_STATS_H */
