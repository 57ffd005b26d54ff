/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sessions of this process, and what it shares with its supervisor for them: the ledger and the
 * channel.  What stands before `lock` is set before any session exists.  Any thread.
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
	struct gpd_channel channel; /* to the supervisor; any thread sends */
	void (*before_exit)(void);  /* before the process ends, by any thread; or NULL */
	pthread_mutex_t lock;
	struct gpd_session *first; /* utlist of all; under lock */
	_Atomic int count;         /* of those that have threads */
};

extern struct gpd_sessions gpd_sessions;

/* Takes it into the list, and out of it. */
void gpd_sessions_add(struct gpd_session *session);
void gpd_sessions_remove_locked(struct gpd_session *session) GP_LOCKED(gpd_sessions.lock);

/* As long as the lock is held the session stays: the next one that may be asked anything
 * (up to GPD_SESSION_ENDING), NULL: the first one; and the one of this number.  Or NULL. */
struct gpd_session *gpd_sessions_next_locked(const struct gpd_session *session)
	GP_LOCKED(gpd_sessions.lock);
struct gpd_session *gpd_sessions_find_locked(uint64_t id) GP_LOCKED(gpd_sessions.lock);

/* Ends the process, and takes from the clients what they share with it.  Not exit(): the driver's
 * and other threads may still be at work. */
void gpd_sessions_exit(void) __attribute__((noreturn));

/* For how long a client may be silent (ledger.h); 0: without limit. */
unsigned int gpd_sessions_timeout_ms(void);

/* Whether threads may look for work without sleeping: few sessions, many processors. */
bool gpd_sessions_may_spin(void);
/* How long a thread sleeps that has looked in vain for so long, until its next look. */
uint64_t gpd_sessions_nap_ns(uint64_t waited_ns);

/*
 * Whose work the GPUs may be at, for the log: sessions that have given kernels which are not known
 * to be done, those among them whose clients have gone.
 */

/* Names those of this tenant (-1: of all), "session 3 (host 17 ./program), last kernel k, session 4
 * ...", or "" if there are none.  The only one that there is, or NULL. */
struct gpd_session *gpd_running_work_find(int64_t tenant, char *text, size_t size)
	GP_LOCKED(gpd_sessions.lock);

/* The same for a line of the log, without the lock: "no session" if there are none.  The budget of
 * the only one that is named, else one for all such lines of all workers. */
uint32_t gpd_running_work_describe(char *text, size_t size);

#endif /* GPD_SESSIONS_H */
