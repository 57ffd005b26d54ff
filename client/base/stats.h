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

/* What a thread waits for that is not the answer to a call; numbers of calls are smaller. */
enum gpc_wait {
	GPC_WAIT_CONNECT = 65536, /* a connection */
	GPC_WAIT_TLS,             /* a handshake */
	GPC_WAIT_HELLO,           /* the daemon's preamble and Welcome */
	GPC_WAIT_WINDOW,          /* another window */
	GPC_WAIT_ROOM,            /* answers to others, before so many are outstanding */
	GPC_WAIT_END
};

/*
 * From begin to end the calling thread waits for bytes of the daemon: a blocking round trip, whose
 * cause is a call's number or one of the above.  A wait inside another is part of that one.  Every
 * begin has its end, by the same thread.
 */
void gpc_stats_wait_start(unsigned int cause);
void gpc_stats_wait_stop(void);
/* The calling thread is one of the library's, for which the program does not wait: what it waits
 * for is counted apart, whatever the cause. */
void gpc_stats_set_own_thread(void);
/* How often, and for how long in all, threads waited for this cause. */
void gpc_stats_get_wait(unsigned int cause, uint64_t *count_p, uint64_t *ns_p);
/* A kernel is launched; the first one is remembered. */
void gpc_stats_launch(void);

struct gpc_stats {
	uint64_t waits;
	uint64_t waits_before_launch; /* all, while there was no launch */
	uint64_t own_waits;           /* of the library's threads, not among them */
	uint64_t posted, messages;
	uint64_t bytes_sent, bytes_received;
};

void gpc_stats_get(struct gpc_stats *stats);
void gpc_stats_print(FILE *file);

/* Of a wire call, for logs. */
const char *gpc_call_name(uint16_t number);
/* Of a wait's cause. */
const char *gpc_wait_name(unsigned int cause);

#endif /* GPC_STATS_H */
