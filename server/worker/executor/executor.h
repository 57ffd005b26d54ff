/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life cycle of a session. The supervisor opens it with its window and its line in the ledger,
 * before there is a lane. Lane 0 starts its threads, which end with the lane and then close the
 * session.
 *
 * Ownership: the session is freed by gpd_session_close() or gpd_session_discard().
 * Threads: as noted. A thread that holds the lock of the list (sessions.h) keeps the session alive.
 */
#ifndef GPD_EXECUTOR_H
#define GPD_EXECUTOR_H

#include <cuda.h>
#include <stdint.h>

struct gp_conn;
struct gpd_channel_open;
struct gpd_range;
struct gpd_session;

/* Main thread. Creates a session and adds it to the list. NULL: out of memory. */
struct gpd_session *gpd_session_open(uint64_t id, const struct gpd_channel_open *open,
				     const struct gpd_range *window);
/* Starts the executor and takes ownership of the connection. -ENOMEM: the caller keeps the
 * connection and must discard the session. */
int gpd_session_start(struct gpd_session *session, struct gp_conn *conn);

/*
 * Assigns to the session the number of multiprocessors of each device that its line in the ledger
 * requests, within its tenant's (0: all of the tenant's), and writes the assigned number into the
 * line (0: the whole device). The session's streams move when they next get work. Any thread that
 * keeps the session alive; not concurrently for one session.
 */
void gpd_session_follow_ledger(struct gpd_session *session);

/*
 * Phases of closing a session. The phases are run in this order, and the parts of a phase in the
 * order of gpd_closing_parts. The comments state what a phase may rely on. Every new component of a
 * session needs an entry in that table.
 */
enum gpd_closing_phase {
	GPD_CLOSING_STOP,    /* no new work is accepted; the GPU and the responder still run */
	GPD_CLOSING_AWAIT,   /* the session's GPU work ends or is canceled; waiters are notified */
	GPD_CLOSING_OBJECTS, /* only this thread knows the session; skipped if the GPU is lost */
	GPD_CLOSING_MEMORY,  /* all objects are destroyed; skipped if the GPU is lost */
	/* Nothing is left to free. If the GPU is lost, the session's arrays are detached from the
	 * worker's list. The ledger, the log and the supervisor are notified. */
	GPD_CLOSING_REPORT,
};

/* One entry of the table: a function that closes a component of the session. */
struct gpd_closing_part {
	enum gpd_closing_phase phase;
	void (*close)(struct gpd_session *session);
};

extern const struct gpd_closing_part gpd_closing_parts[];
extern const size_t gpd_closing_part_count;

/* Executor: runs all phases and frees the session. */
void gpd_session_close(struct gpd_session *session);

/* Ends and frees a session without threads, which the caller has removed from the list. The
 * supervisor is notified with the result and the reason. */
void gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason);

#endif /* GPD_EXECUTOR_H */
