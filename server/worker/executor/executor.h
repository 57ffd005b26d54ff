/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of a session: gpd_session_open(), gpd_session_start() and gpd_session_close().
 * executor.c contains the start and the loop of the executor's thread; session_close.c the end. The
 * supervisor opens a session with its window (its range of device addresses) and its entry in the
 * ledger (struct gpd_ledger_session, ledger.h), before there is a connection. Lane 0, its first
 * connection, starts its threads, which end with the lane and then close the session.
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

/* Creates a session in the state GPD_SESSION_OPENED and adds it to the list of sessions. id: from
 * the supervisor. open: copied; its entry must be less than GPD_LEDGER_SESSIONS. The session takes
 * over the window's addresses. Assigns SMs (gpd_session_follow_ledger()). NULL: out of memory; the
 * caller keeps the window. Main thread, without gpd_sessions.lock. */
struct gpd_session *gpd_session_open(uint64_t id, const struct gpd_channel_open *open,
				     const struct gpd_range *window);
/* Starts the executor thread on lane 0. The session must be in the state GPD_SESSION_OPENED.
 * Returns 0: the session owns the connection, and its executor closes the session. Returns -ENOMEM
 * if the thread could not be started: the caller keeps the connection and removes the session from
 * the list, and after it has released the lock, calls gpd_session_discard(). The caller holds
 * gpd_sessions.lock. */
int gpd_session_start(struct gpd_session *session, struct gp_conn *conn);

/*
 * Assigns SMs to the session, for each device. Reads the numbers requested for the session and for
 * its tenant from the ledger (sm_wanted; 0: all SMs of the tenant, or no limit), and stores the
 * assigned number in the session's entry (sm_assigned; 0: the whole device). The assigned number is
 * at most that of the tenant. The session's streams move to these SMs when they next get work. May
 * block in the driver (gpd_partition_assign(), device/partition.h). Any thread that holds
 * gpd_sessions.lock, or before the session is in the list.
 */
void gpd_session_follow_ledger(struct gpd_session *session);

/*
 * Phases of closing a session. The phases are run in this order, and the parts of a phase in the
 * order of gpd_closing_parts. The comments state what a phase may rely on. Every new component of a
 * session needs an entry in that table.
 */
enum gpd_closing_phase {
	GPD_CLOSING_STOP,  /* no new work is accepted; the GPU and the responder still run */
	GPD_CLOSING_AWAIT, /* the session's GPU work ends or is canceled; waiters are notified */
	/* No other thread of the session runs; skipped if the GPU is lost. Then the client
	 * gets time to copy its shared memory. */
	GPD_CLOSING_OBJECTS,
	GPD_CLOSING_MEMORY, /* all objects are destroyed; skipped if the GPU is lost */
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
 * and frees it. First stores the reason of the end, unless there is one. Blocks until the session's
 * work on the GPU has ended. Then blocks until the client, if it shares memory with the worker, has
 * copied the memory and closed lane 0, for at most 2 s plus 1 s per GiB of its pinned memory. May
 * end the process (worker_retirement.h). Called by the session's executor as its last action,
 * without gpd_sessions.lock. */
void gpd_session_close(struct gpd_session *session);

/* Ends and frees a session that has no threads: it was only opened, or gpd_session_start() has
 * failed. Releases its window. The caller has removed the session from the list
 * (gpd_sessions_remove_locked(), session/sessions.h). The supervisor is notified with the result
 * and the reason, which is copied. May end the process (worker_retirement.h). Any thread, without
 * gpd_sessions.lock. */
void gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason);

#endif /* GPD_EXECUTOR_H */
