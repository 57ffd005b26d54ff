/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of worker processes: starts them, selects the one for new sessions, and handles their
 * exits.
 *
 * New shared sessions go to one worker, `serving`. While orphaned work runs there, they go to
 * another worker that is SERVING, or to a new one. A worker that gets no new sessions exits after
 * its last session, or is selected again when the current one becomes BUSY; so there are at most
 * the WEDGED ones (orphaned_work.h) and one more. In addition there are dedicated workers, started
 * by the admission for single sessions, and the configured number of spare ones that it uses first.
 * After an exit the admission notifies the sessions, and another worker is started automatically.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_WORKER_POOL_H
#define GPD_WORKER_POOL_H

#include "server/common/config/options.h"
#include "server/supervisor/admission/admission.h"
#include "server/supervisor/workers/worker_process.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_worker_pool {
	const struct gpd_options *options;
	struct gpd_admission *admission; /* owns the list of workers */
	struct gpd_quota *quota;
	/* STARTING, SERVING or BUSY: gets new sessions; NULL: none. */
	struct gpd_worker_process *serving;
	int64_t start_ms;   /* earliest time to start another one */
	int64_t spare_ms;   /* the same for spare workers */
	int64_t checked_ms; /* time of the last iteration */
	int early_exits;
	bool served;       /* a worker has been ready at least once */
	bool start_failed; /* the first worker failed to start; the reason is on standard error */
	bool stopping;     /* no more workers are started */
};

/* Initializes the pool without starting a worker, and registers it with the admission as the source
 * of dedicated workers. */
void gpd_worker_pool_init(struct gpd_worker_pool *children, const struct gpd_options *options,
			  struct gpd_admission *admission);
/* Kills and reaps all remaining workers. */
void gpd_worker_pool_fini(struct gpd_worker_pool *children);

/* Fills fds for poll(). Returns the number of entries, at most GPD_WORKERS_MAX. */
int gpd_worker_pool_poll(struct gpd_worker_pool *children, struct pollfd *fds);
/* Handles the workers' messages after poll(). Workers may be started, but none is removed. */
void gpd_worker_pool_serve(struct gpd_worker_pool *children, const struct pollfd *fds);
/* Reaps workers that have exited, after SIGCHLD. */
void gpd_worker_pool_reap(struct gpd_worker_pool *children);
/* Called in each iteration of the loop: kills workers past their deadline, and starts those that
 * are due. */
void gpd_worker_pool_check(struct gpd_worker_pool *children, int64_t now_ms);

/* Requests all workers to exit. */
void gpd_worker_pool_stop(struct gpd_worker_pool *children);
/* Retires a worker: it gets no new sessions, and exits after its last one. If it was the one for
 * new sessions, all other shared and spare workers are retired as well. Returns false if there is
 * no such worker, or it is starting or ending. */
bool gpd_worker_pool_retire(struct gpd_worker_pool *children, pid_t worker);

#endif /* GPD_WORKER_POOL_H */
