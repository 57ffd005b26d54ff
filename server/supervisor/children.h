/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's workers: their start, who of them gets new sessions, and their death.
 *
 * New sessions get one worker.  While work of gone clients goes on there, they get another one that
 * is SERVING, or a new one.  A worker that new sessions do not get ends with its last session, or
 * gets new ones again when the other one is BUSY; so there are never more than the STUCK ones
 * (orphans.h) and one.  Besides there are those that serve one session alone, which the admission
 * has asked for, and those in reserve that it gets then: as many as the configuration says.  The
 * admission tells sessions of a death; another worker then starts by itself. Main thread only.
 */
#ifndef GPD_CHILDREN_H
#define GPD_CHILDREN_H

#include "server/common/config/options.h"
#include "server/supervisor/admission/admission.h"
#include "server/supervisor/workers/child.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_worker_pool {
	const struct gpd_options *options;
	struct gpd_admission *admission; /* has the list of workers */
	struct gpd_quota *quota;
	struct gpd_worker_process
		*serving;   /* STARTING, SERVING or BUSY: gets new sessions; NULL: none */
	int64_t start_ms;   /* not before this, if there is none */
	int64_t spare_ms;   /* the same of those in reserve */
	int64_t checked_ms; /* the last turn */
	int early_exits;
	bool served;       /* one was ready once */
	bool start_failed; /* the first could not start, and standard error says why */
	bool stopping;     /* no more are started */
};

/* Starts none yet.  The admission, which has the list of them, gets its workers for single sessions
 * here from now on. */
void gpd_worker_pool_init(struct gpd_worker_pool *children, const struct gpd_options *options,
			  struct gpd_admission *admission);
/* Kills those that are left, and waits for them. */
void gpd_worker_pool_fini(struct gpd_worker_pool *children);

/* How many there are to poll, at most GPD_WORKERS_MAX. */
int gpd_worker_pool_poll(struct gpd_worker_pool *children, struct pollfd *fds);
/* After the poll: what they say.  Some may start meanwhile, but none goes. */
void gpd_worker_pool_serve(struct gpd_worker_pool *children, const struct pollfd *fds);
/* After SIGCHLD. */
void gpd_worker_pool_reap(struct gpd_worker_pool *children);
/* In each turn: kills whoever is late, and starts what is due. */
void gpd_worker_pool_check(struct gpd_worker_pool *children, int64_t now_ms);

/* Asks all to end. */
void gpd_worker_pool_stop(struct gpd_worker_pool *children);
/* The worker gets no new sessions, and ends with its last; if new ones got it, neither do those
 * that were there before.  False: there is no such worker, or it is starting or ending. */
bool gpd_worker_pool_retire(struct gpd_worker_pool *children, pid_t worker);

#endif /* GPD_CHILDREN_H */
