/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of sessions of this worker process, and the connections to the supervisor that they
 * share: the ledger (shared memory with counters and limits) and the message channel.
 *
 * Ownership: the list does not own its sessions; executor.h describes who frees them. A session in
 * the list is not freed while gpd_sessions.lock is held.
 * Threads: any. The members before `lock` are set before any session exists and do not change
 * afterwards.
 */
#ifndef GPD_SESSIONS_H
#define GPD_SESSIONS_H

#include "base/lock.h"
#include "server/common/ledger/channel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_ledger;
struct gpd_session;

/* Process-wide state; there is one instance, gpd_sessions. */
struct gpd_sessions {
	int cpus;                   /* number of processors available to the process */
	struct gpd_ledger *ledger;  /* NULL in unit tests only */
	struct gpd_channel channel; /* to the supervisor; any thread may send */
	/* Called by the thread that ends the process, to free memory that clients share with the
	 * process; NULL: nothing to call. */
	void (*before_exit)(void);
	pthread_mutex_t lock;      /* protects the list; its holder may use the sessions in it */
	struct gpd_session *first; /* list of all sessions (utlist); protected by lock */
	_Atomic int count;         /* number of sessions with an executor thread */
};

extern struct gpd_sessions gpd_sessions;

/* Adds the session, complete, to the list. Acquires gpd_sessions.lock. */
void gpd_sessions_add(struct gpd_session *session);
/* Removes the session from the list; it must be in it. Does not free it and does not change its
 * state. */
void gpd_sessions_remove_locked(struct gpd_session *session) GP_LOCKED(gpd_sessions.lock);

/* Iterates over the sessions in the list that are usable: in a state up to GPD_SESSION_ENDING.
 * Returns the first one after `session` (NULL: the first of all), borrowed while the lock is held;
 * NULL: there are no more. */
struct gpd_session *gpd_sessions_next_locked(const struct gpd_session *session)
	GP_LOCKED(gpd_sessions.lock);
/* Returns the usable session with this ID, borrowed while the lock is held; NULL: there is none. */
struct gpd_session *gpd_sessions_find_locked(uint64_t id) GP_LOCKED(gpd_sessions.lock);

/* Sends a message to the supervisor; blocks until the channel has accepted it. session: ID of the
 * session that it concerns, 0: the worker. data: size bytes; NULL if size is 0. Returns 0 or a
 * negative errno; after a failure the process is about to end with the supervisor. */
int gpd_sessions_notify_supervisor(enum gpd_channel_type type, int32_t result, uint64_t session,
				   const void *data, size_t size);

/* Ends the process with status 0 by _exit(), not exit(), because threads of the driver and of
 * sessions may still be running. Calls before_exit() first. May be called with and without
 * gpd_sessions.lock. */
void gpd_sessions_exit(void) __attribute__((noreturn));

/* Maximum time in milliseconds that a client may be silent (ledger.h). 0: no limit. */
unsigned int gpd_sessions_timeout_ms(void);

/* Returns whether a thread may poll without sleeping: true if there are few sessions, of all
 * workers, for the number of processors. */
bool gpd_sessions_may_spin(void);
/* Returns the time in nanoseconds that a thread should sleep before its next poll, after it has
 * polled in vain for waited_ns: 1/32 of that, at least 2 us, and at most 50 us (500 us with many
 * sessions) or 1/512 of waited_ns, whichever is longer, up to 2 ms. So a wait ends at most 0.2 %
 * late, and waiting for a kernel of seconds costs almost no processor time. */
uint64_t gpd_sessions_nap_ns(uint64_t waited_ns);

/* Describes the sessions of this tenant (index in the ledger; -1: of all tenants) with running
 * work, for the log. Running work means that a session has launched kernels and that its work is
 * not known to be done; its client may have left. Writes them to text, as "session 3 (host 17
 * ./program), last kernel k, session 4 ...", or "" if there are none. Text beyond size bytes is cut
 * off; size is at least 1. Returns the session, borrowed while the lock is held, if there is
 * exactly one; else NULL. In fault_exit.c, as gpd_running_work_describe(). */
struct gpd_session *gpd_running_work_find(int64_t tenant, char *text, size_t size)
	GP_LOCKED(gpd_sessions.lock);

/* Describes the running work of all tenants as gpd_running_work_find() does, or writes "no session"
 * if there is none. Text beyond size bytes is cut off. Acquires gpd_sessions.lock. Returns the log
 * budget (log_budget.h) to charge the line to: that of the only session, or the common budget for
 * sessions that share a worker. */
uint32_t gpd_running_work_describe(char *text, size_t size);

#endif /* GPD_SESSIONS_H */
