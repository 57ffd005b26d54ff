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

/* Counts a call that was appended to a session's ring. number: the call's number in the protocol;
 * is_posted: no reply is awaited. The caller holds the session's sender.lock. Calls of several
 * sessions that are counted at the same time may be counted once. */
void gpc_stats_call(uint16_t number, bool is_posted);
/* Counts one message sent to a daemon, of `data` bytes plus the buffers in bulk[]. */
void gpc_stats_sent(size_t data, const struct iovec *bulk, int bulk_count);
/* Counts bytes received from a daemon. */
void gpc_stats_received(size_t size);

/* Causes of a wait for the daemon. Values below GPC_WAIT_CONNECT are call numbers: a wait for the
 * reply to that call. */
enum gpc_wait {
	GPC_WAIT_CONNECT = 65536, /* for a connection */
	GPC_WAIT_TLS,             /* for a TLS handshake */
	GPC_WAIT_HELLO, /* for the daemon's preamble and Welcome, the first messages of a session */
	GPC_WAIT_WINDOW, /* for another address window (client/connect/window.h) */
	GPC_WAIT_ROOM,   /* for earlier replies, because too many calls are outstanding */
	GPC_WAIT_END
};

/*
 * Marks the start of a wait of the calling thread for data from the daemon (a blocking round trip).
 * cause: a call number or a value of enum gpc_wait except GPC_WAIT_END. A nested wait counts as
 * part of the outer one. gpc_stats_wait_stop() on the same thread must follow.
 */
void gpc_stats_wait_start(unsigned int cause);
/* Marks the end of the wait that the thread's last gpc_stats_wait_start() has started. */
void gpc_stats_wait_stop(void);
/* Marks the calling thread as one of the library's own, because the program does not wait for it.
 * Its waits are counted as own_waits, regardless of the cause. Called at the thread's start. */
void gpc_stats_set_own_thread(void);
/* Sets *count_p to the number of waits for this cause, a call number or a value of enum gpc_wait,
 * and *ns_p to the total time of those that have ended. Waits of the library's own threads are not
 * included. */
void gpc_stats_get_wait(unsigned int cause, uint64_t *count_p, uint64_t *ns_p);
/* Called at each kernel launch. The first call fixes waits_before_launch; later calls have no
 * effect. */
void gpc_stats_launch(void);

/* Totals of the process. */
struct gpc_stats {
	/* blocking round trips of the program's threads */
	uint64_t waits;
	uint64_t waits_before_launch; /* waits before the first kernel launch; equal to `waits`
					 before that launch */
	uint64_t own_waits; /* waits of the library's own threads, not included in waits */
	/* calls sent without waiting for a reply, and messages, each of which may contain several
	 * calls */
	uint64_t posted, messages;
	uint64_t bytes_sent, bytes_received;
};

/* Stores the totals since the process started. */
void gpc_stats_get(struct gpc_stats *stats);
/* Prints the totals, the waits by cause and the number of each call to the file, one per line,
 * without those that are 0. */
void gpc_stats_print(FILE *file);

/* Returns the name of the call with this number in the protocol, or "unknown call". The text is
 * static. */
const char *gpc_call_name(uint16_t number);
/* Returns the name of the cause of a wait: a call number, or a value of enum gpc_wait except
 * GPC_WAIT_END. The text is static. */
const char *gpc_wait_name(unsigned int cause);

#endif /* GPC_STATS_H */
