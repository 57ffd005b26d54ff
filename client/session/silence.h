/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a silent network and a silent daemon while the session waits for a reply, and reads the
 * control connection.
 *
 * If the daemon's machine has acknowledged nothing for GPUPOOL_TIMEOUT, the session ends. If the
 * machine acknowledges, but the daemon does not reply to a ping on the control connection, one
 * message is printed, and the session continues to wait. A busy daemon replies to pings.
 * The control connection also delivers the reason why the daemon ends the session.
 *
 * Threads: any for gpc_silence_check(), without a lock of the session.
 */
#ifndef GPC_SILENCE_H
#define GPC_SILENCE_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_conn;
struct gpc_session;

/* The daemon's messages on the control connection. */
#define GPC_REASON_MAX 512
struct gpc_control_news {
	bool is_over; /* the daemon has ended the session; text and, unless CUDA_SUCCESS, result
			 give the reason */
	CUresult result;
	char text[GPC_REASON_MAX];
	int failed;    /* error of the connection as gp_conn_recv() returns it; 0: none */
	uint64_t pong; /* number of the last pong */
	bool hangs; /* that pong reported that the session's worker does not respond to the daemon
		     */
};

/* Reads the messages that have arrived, under session.reason_lock; does not wait for a message to
 * start. */
void gpc_control_news_read(struct gpc_session *session);

/* Reads until `end` (gp_now_ms()). Returns whether the daemon has reported why it ends the session,
 * skipping other messages. */
bool gpc_control_news_await(struct gpc_session *session, int64_t end);

/* A connection whose messages may stall. */
struct gpc_silence_lane {
	struct gpc_session *session;
	unsigned int number;
	struct gp_conn *conn; /* set by gpc_silence_watch() */
};

/* Interval at which a waiting session checks its connections. */
#define GPC_SILENCE_CHECK_MS 500

/* State of the detection for one session. */
struct gpc_silence {
	atomic_flag checking;    /* the fields below belong to the thread that has set this flag */
	unsigned int timeout_ms; /* GPUPOOL_TIMEOUT; 0: no limit */
	atomic_int_fast64_t next_ms; /* time of the next check */
	atomic_uint_fast64_t moved;  /* number of messages and chunks, in both directions */
	uint64_t seen_moved;
	bool waiting;
	int64_t heard_ms;         /* last sign of life of the daemon, or start of the wait */
	uint64_t ping;            /* number of the last ping */
	int64_t pinged_ms;        /* time when it was sent; 0: the daemon has replied */
	int64_t answers_since_ms; /* end of the last silence that was reported */
	int64_t next_ping_ms;     /* no ping before this time */
	bool hangs;               /* the daemon responds, but its worker does not */
	atomic_bool reported;     /* silence was reported, but not its end */
	/* Reception has stalled in the middle of a message: when that was last observed, for how
	 * long, and on which lane. */
	atomic_int_fast64_t stalled_ms;
	atomic_uint stalled_for_ms, stalled_lane;
	atomic_flag sending;          /* a thread sends on the control connection */
	struct gpc_silence_lane lane; /* lane 0 */
};

/* Initializes the state and watches lane 0, before the session has threads. */
void gpc_silence_init(struct gpc_session *session);

/* Records that data was sent or received. */
static inline void
gpc_silence_note_progress(struct gpc_silence *silence)
{
	atomic_fetch_add_explicit(&silence->moved, 1, memory_order_relaxed);
}

/* Checks the connections if a check is due. Returns true if the session is lost, with the reason in
 * `why`. */
#define GPC_SILENCE_WHY_MAX 256
bool gpc_silence_is_due(const struct gpc_session *session);
bool gpc_silence_check(struct gpc_session *session, char *why, size_t size);

/* Watches a connection, before its first message; the check then also runs while reception stalls
 * in the middle of a message. */
void gpc_silence_watch(struct gp_conn *conn, struct gpc_silence_lane *lane);

/* Says goodbye on the control connection, unless another thread is just sending a ping. */
void gpc_silence_send_bye(struct gpc_session *session);

#endif /* GPC_SILENCE_H */
