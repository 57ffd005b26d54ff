/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions of this worker process, and what they share with the supervisor: the ledger and the
 * channel.
 *
 * Ownership: the list does not own the sessions (executor.h).
 * Threads: any. The members before `lock` are set before any session exists.
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

struct gpd_sessions {
	int cpus;
	struct gpd_ledger *ledger;
	struct gpd_channel channel; /* to the supervisor; any thread may send */
	void (*before_exit)(void);  /* called by the thread that exits; or NULL */
	pthread_mutex_t lock;
	struct gpd_session *first; /* utlist of all; protected by lock */
	_Atomic int count;         /* number of sessions with threads */
};

extern struct gpd_sessions gpd_sessions;

/* Adds the session to the list; removes it. */
void gpd_sessions_add(struct gpd_session *session);
void gpd_sessions_remove_locked(struct gpd_session *session) GP_LOCKED(gpd_sessions.lock);

/* Returns the next session that may still be used (up to GPD_SESSION_ENDING; NULL: the first), or
 * the session of this number, or NULL. The session is not freed while the lock is held. */
struct gpd_session *gpd_sessions_next_locked(const struct gpd_session *session)
	GP_LOCKED(gpd_sessions.lock);
struct gpd_session *gpd_sessions_find_locked(uint64_t id) GP_LOCKED(gpd_sessions.lock);

/* Ends the process after withdrawing the memory that clients share with it. Does not call exit(),
 * because threads of the driver and others may still be running. */
void gpd_sessions_exit(void) __attribute__((noreturn));

/* Maximum time that a client may be silent (ledger.h); 0: no limit. */
unsigned int gpd_sessions_timeout_ms(void);

/* Whether threads may poll without sleeping: there are few sessions and many processors. */
bool gpd_sessions_may_spin(void);
/* How long a thread sleeps before its next poll after it has polled in vain for this time. */
uint64_t gpd_sessions_nap_ns(uint64_t waited_ns);

/*
 * Running work, for the log: sessions with launched kernels that are not known to be done,
 * including sessions whose clients have left.
 */

/* Writes the sessions with running work of this tenant (-1: of all) into text, as "session 3 (host
 * 17 ./program), last kernel k, session 4 ..."; "" if there are none. Returns the session if it is
 * the only one, else NULL. */
struct gpd_session *gpd_running_work_find(int64_t tenant, char *text, size_t size)
	GP_LOCKED(gpd_sessions.lock);

/* The same for a log line, without the lock held: "no session" if there are none. Returns the log
 * budget of the only session, or the common budget of sessions that share a worker. */
uint32_t gpd_running_work_describe(char *text, size_t size);

#endif /* GPD_SESSIONS_H */
