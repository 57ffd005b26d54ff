/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of the client: counts the calls sent and the time that threads waited.
 * GPUPOOL_LOG=stats prints them at exit.
 *
 * Threads: process-wide; any thread may call, except where noted.
 * Units: times are nanoseconds, sizes bytes.
 */
#ifndef GPC_STATS_H
#define GPC_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/uio.h>

/* gpc_stats_call() counts a call that was appended to a connection, with the send lock held. The
 * others count a message sent and bytes received. */
void gpc_stats_call(uint16_t number, bool posted);
void gpc_stats_sent(size_t data, const struct iovec *bulk, int bulk_count);
void gpc_stats_received(size_t size);

/* Causes of a wait other than the reply to a call. Call numbers are smaller. */
enum gpc_wait {
	GPC_WAIT_CONNECT = 65536, /* a connection */
	GPC_WAIT_TLS,             /* a handshake */
	GPC_WAIT_HELLO,           /* the daemon's preamble and Welcome */
	GPC_WAIT_WINDOW,          /* another window */
	GPC_WAIT_ROOM,            /* earlier replies, because too many calls are outstanding */
	GPC_WAIT_END
};

/*
 * Mark a wait of the calling thread for data from the daemon (a blocking round trip). cause: a call
 * number, or one of the causes above. A nested wait counts as part of the outer one. Each start
 * needs a stop by the same thread.
 */
void gpc_stats_wait_start(unsigned int cause);
void gpc_stats_wait_stop(void);
/* Marks the calling thread as one of the library's own, for which the program does not wait: its
 * waits are counted separately, regardless of the cause. */
void gpc_stats_set_own_thread(void);
/* Returns the number of waits for this cause, and their total time. */
void gpc_stats_get_wait(unsigned int cause, uint64_t *count_p, uint64_t *ns_p);
/* Counts a kernel launch. Only the first has an effect. */
void gpc_stats_launch(void);

struct gpc_stats {
	uint64_t waits;
	uint64_t waits_before_launch; /* equal to waits while no kernel was launched */
	uint64_t own_waits;           /* of the library's own threads, not included in waits */
	uint64_t posted, messages;
	uint64_t bytes_sent, bytes_received;
};

/* Return the totals since the process started, and print them with all waits and calls. */
void gpc_stats_get(struct gpc_stats *stats);
void gpc_stats_print(FILE *file);

/* Returns the name of a wire call, for logs. */
const char *gpc_call_name(uint16_t number);
/* Returns the name of the cause of a wait. */
const char *gpc_wait_name(unsigned int cause);

#endif /* GPC_STATS_H */
