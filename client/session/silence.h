/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detects a silent network and a silent daemon while the session waits for a reply, and reads the
 * control connection (the connection to the supervisor).
 *
 * If the daemon's machine has acknowledged nothing for GPUPOOL_TIMEOUT, the session ends. If the
 * machine acknowledges, but the daemon does not reply to a ping on the control connection, its
 * worker hangs, or a lane stops in the middle of a message, one message is printed, and the session
 * continues to wait. A busy daemon replies to pings. The control connection also delivers the
 * reason why the daemon ends the session.
 *
 * Threads: any thread may call, without a lock of the session. Exception: the caller of
 * gpc_control_news_read() and gpc_control_news_await() holds session.reason_lock.
 * Units: members and parameters with the suffix _ms are milliseconds; times are those of
 * gp_now_ms().
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

/* Maximum size of a reason, in bytes, including its NUL. */
#define GPC_REASON_MAX 512
/* The daemon's messages on the control connection. Guarded by session.reason_lock. */
struct gpc_control_news {
	bool is_over;    /* the daemon has ended the session; `text` is the reason */
	CUresult result; /* with is_over: the sticky error that the daemon reported; CUDA_SUCCESS:
			    none */
	char text[GPC_REASON_MAX]; /* printable text, NUL-terminated */
	/* error of gp_conn_wait() or gp_control_recv() (protocol/control.h) on the connection,
	 * which is then unusable; 0: none */
	int failed;
	uint64_t pong; /* number of the last ping to which the daemon has replied; 0: none */
	bool hangs;    /* the last reply reported that the session's worker does not respond to the
			  daemon */
};

/* Reads the messages that have arrived into session.news, up to the one that ends the session. Does
 * not wait for a message to start; waits at most one second for the rest of a message that has
 * started, after which the connection is unusable. Has no effect without a control connection or
 * after an error. */
void gpc_control_news_read(struct gpc_session *session);

/* Blocks and reads messages until the daemon has reported why it ends the session, the connection
 * fails, or `end` (gp_now_ms()). Returns whether the reason was reported (news.is_over). Returns
 * false at once without a control connection. */
bool gpc_control_news_await(struct gpc_session *session, int64_t end);

/* A lane whose messages may stall. Must stay valid as long as the connection. */
struct gpc_silence_lane {
	struct gpc_session *session;
	unsigned int number;  /* number of the lane, for messages to the user */
	struct gp_conn *conn; /* set by gpc_silence_watch() */
};

/* Interval at which a waiting session checks its connections. */
#define GPC_SILENCE_CHECK_MS 500

/* State of the detection for one session. Members that are not atomic are used only by the thread
 * that has set `checking`, unless noted otherwise. */
struct gpc_silence {
	atomic_flag checking; /* set by the thread that is checking */
	unsigned int
		timeout_ms; /* GPUPOOL_TIMEOUT, constant after gpc_silence_init(); 0: no limit */
	atomic_int_fast64_t next_ms; /* time of the next check */
	atomic_uint_fast64_t moved;  /* number of messages and chunks that were sent or received */
	uint64_t seen_moved;         /* value of `moved` at the last check */
	bool waiting;                /* the session waited for the daemon at the last check */
	int64_t heard_ms;            /* last sign of life of the daemon, or start of the wait */
	uint64_t ping;               /* number of the last ping; 0: none was sent */
	int64_t pinged_ms; /* time when the last ping was sent; 0: the daemon has replied to it */
	int64_t answers_since_ms; /* end of the last silence that was reported; 0: none */
	int64_t next_ping_ms;     /* no ping before this time */
	bool hangs;               /* the daemon responds, but its worker does not */
	atomic_bool reported;     /* silence was reported, but not its end */
	/* Reception has stalled in the middle of a message: stalled_ms is the time when that was
	 * last observed (0: never), stalled_for_ms the duration until then, and stalled_lane the
	 * number of the lane. */
	atomic_int_fast64_t stalled_ms;
	atomic_uint stalled_for_ms, stalled_lane;
	atomic_flag sending;          /* set by the thread that sends on the control connection */
	struct gpc_silence_lane lane; /* lane 0 */
};

/* Called by session.c before the session has threads: initializes the state and watches lane 0. */
void gpc_silence_init(struct gpc_session *session);

/* Records that a message or chunk was sent or received. Lock-free. */
static inline void
gpc_silence_note_progress(struct gpc_silence *silence)
{
	atomic_fetch_add_explicit(&silence->moved, 1, memory_order_relaxed);
}

/* Sufficient size of `why` of gpc_silence_check(), in bytes. */
#define GPC_SILENCE_WHY_MAX 256
/* Returns whether a check is due, in constant time. */
bool gpc_silence_is_due(const struct gpc_session *session);
/* Checks the connections if a check is due; may send a ping and print a message, and may wait for a
 * second as gpc_control_news_read(). Returns true if the session must be ended as lost, with the
 * reason in `why` (at most size bytes, NUL-terminated); the caller then ends it by
 * gpc_session_fail() with the CUresult for -ETIMEDOUT (client/base/error.h). Returns false
 * otherwise, also if another thread is checking or the session is over; `why` is then undefined. */
bool gpc_silence_check(struct gpc_session *session, char *why, size_t size);

/* Watches a lane, before its first message: sets its stall timeout and callback, so that a check
 * also runs while reception stalls in the middle of a message. lane->session and lane->number must
 * be set; *lane must stay valid as long as the connection. */
void gpc_silence_watch(struct gp_conn *conn, struct gpc_silence_lane *lane);

/* Called by session.c after all calls were sent: notifies the daemon on the control connection that
 * the session ends. Sends nothing if there is no control connection, or if another thread is
 * sending a ping. Errors are ignored. */
void gpc_silence_send_bye(struct gpc_session *session);

#endif /* GPC_SILENCE_H */
