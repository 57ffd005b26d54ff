/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a silent network and a silent daemon while the session waits for an answer.
 *
 * If the daemon's machine has acknowledged nothing for GPUPOOL_TIMEOUT, the session ends.  If the
 * machine acknowledges, but the daemon does not answer a ping on the control connection, one line
 * is printed, and the session waits on.  A daemon that is busy answers pings.
 *
 * The control connection also brings the reason why the daemon ends the session.
 *
 * Threads: gpc_silence_check() from any, without a lock of the session's.
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

/* Of the daemon, on the control connection. */
#define GPC_REASON_MAX 512
struct gpc_control_news {
	bool is_over; /* the daemon ends the session; text and, unless CUDA_SUCCESS, result */
	CUresult result;
	char text[GPC_REASON_MAX];
	int failed;    /* what ended the connection, as gp_conn_recv() returns it; 0: nothing */
	uint64_t pong; /* number of the last answer to a ping ... */
	bool hangs;    /* ... and whether the session's worker does not answer the daemon */
};

/* Reads what has come, under session.reason_lock; waits for no message to begin. */
void gpc_control_news_read(struct gpc_session *session);

/* The same until `end` (gp_now_ms()): whether the daemon says why it ends the session, whatever
 * else it sends meanwhile. */
bool gpc_control_news_await(struct gpc_session *session, int64_t end);

/* A connection whose messages may stall. */
struct gpc_silence_lane {
	struct gpc_session *session;
	unsigned int number;
	struct gp_conn *conn; /* gpc_silence_watch() */
};

/* How often a session that waits checks its connections. */
#define GPC_SILENCE_CHECK_MS 500

struct gpc_silence {
	atomic_flag checking;        /* the fields below are the thread's that has set it */
	unsigned int timeout_ms;     /* GPUPOOL_TIMEOUT; 0: without limit */
	atomic_int_fast64_t next_ms; /* when the connections are to be checked next */
	atomic_uint_fast64_t moved;  /* counts messages and chunks, in both directions */
	uint64_t seen_moved;
	bool waiting;
	int64_t heard_ms;         /* the last sign of the daemon, or when the wait began */
	uint64_t ping;            /* number of the last one */
	int64_t pinged_ms;        /* when it was sent; 0: it is answered */
	int64_t answers_since_ms; /* the end of the last silence that was reported */
	int64_t next_ping_ms;     /* none before */
	bool hangs;               /* the daemon answers, its worker does not */
	atomic_bool reported;     /* silence, and not its end */
	/* Receiving has stalled in the middle of a message: when that was noticed last, for how
	 * long, on which lane. */
	atomic_int_fast64_t stalled_ms;
	atomic_uint stalled_for_ms, stalled_lane;
	atomic_flag sending;          /* on the control connection */
	struct gpc_silence_lane lane; /* lane 0 */
};

/* With lane 0, before the session has threads. */
void gpc_silence_init(struct gpc_session *session);

/* Something was sent or has come. */
static inline void
gpc_silence_note_progress(struct gpc_silence *silence)
{
	atomic_fetch_add_explicit(&silence->moved, 1, memory_order_relaxed);
}

/* If it is time, checks the connections: whether the session is lost, and why. */
#define GPC_SILENCE_WHY_MAX 256
bool gpc_silence_is_due(const struct gpc_session *session);
bool gpc_silence_check(struct gpc_session *session, char *why, size_t size);

/* Before a lane's first message: receiving waits on in the middle of a message, too. */
void gpc_silence_watch(struct gp_conn *conn, struct gpc_silence_lane *lane);

/* Says goodbye on the control connection, unless a ping is just being sent. */
void gpc_silence_send_bye(struct gpc_session *session);

#endif /* GPC_SILENCE_H */
