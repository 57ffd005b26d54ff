/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life cycle of a session. The supervisor opens it with its window (its range of device addresses)
 * and its line in the ledger, before there is a connection. Lane 0, its first connection, starts
 * its threads, which end with the lane and then close the session.
 *
 * Ownership: the session is freed by gpd_session_close() or gpd_session_discard(). A thread that
 * finds it in the list of sessions (session/sessions.h) may use it while holding gpd_sessions.lock.
 * Threads: as noted.
 */
#ifndef GPD_EXECUTOR_H
#define GPD_EXECUTOR_H

#include <cuda.h>
#include <stdint.h>

struct gp_conn;
struct gpd_channel_open;
struct gpd_range;
struct gpd_session;

/* Creates a session in the state GPD_SESSION_OPENED and adds it to the list of sessions. The
 * session copies *open and takes over the window's addresses. NULL: out of memory; the caller keeps
 * the window. Main thread. */
struct gpd_session *gpd_session_open(uint64_t id, const struct gpd_channel_open *open,
				     const struct gpd_range *window);
/* Starts the executor thread on lane 0. Returns 0: the session owns the connection. -ENOMEM: the
 * thread could not be started; the caller keeps the connection and must discard the session. The
 * caller holds gpd_sessions.lock. */
int gpd_session_start(struct gpd_session *session, struct gp_conn *conn);

/*
 * Assigns SMs to the session, for each device. Its line in the ledger states the requested number;
 * 0: all SMs of its tenant. The assigned number is at most that of the tenant, and is stored in the
 * line; 0: the whole device. The session's streams move to these SMs when they next get work. Any
 * thread that holds gpd_sessions.lock, or before the session is in the list.
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
	GPD_CLOSING_OBJECTS, /* no other thread uses the session; skipped if the GPU is lost */
	GPD_CLOSING_MEMORY,  /* all objects are destroyed; skipped if the GPU is lost */
	/* Nothing is left to free. If the GPU is lost, the session's arrays are detached from the
	 * worker's list. The ledger, the log and the supervisor are notified. */
	GPD_CLOSING_REPORT,
};

/* One entry of the table: a function that closes a component of the session. It must accept
 * a session that never used the component. */
struct gpd_closing_part {
	enum gpd_closing_phase phase;
	void (*close)(struct gpd_session *session);
};

/* The table, of gpd_closing_part_count entries. */
extern const struct gpd_closing_part gpd_closing_parts[];
extern const size_t gpd_closing_part_count;

/* Closes the session: runs all phases, notifies the supervisor, removes the session from the list
 * and frees it. Blocks until the session's work on the GPU has ended, and a few seconds for a
 * client that copies its shared memory. Stores the reason of the end if there is none. Called
 * without gpd_sessions.lock. May end the process (worker_retirement.h). Called by the session's
 * executor as its last action. */
void gpd_session_close(struct gpd_session *session);

/* Ends and frees a session that has no threads, and releases its window. The caller has removed the
 * session from the list. The supervisor is notified with the result and the reason, which is
 * copied. May end the process (worker_retirement.h). Any thread, without gpd_sessions.lock. */
void gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason);

#endif /* GPD_EXECUTOR_H */
