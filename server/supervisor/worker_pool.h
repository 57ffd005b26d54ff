/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of worker processes: starts them, selects the one for new sessions, and handles their
 * exits.
 *
 * New shared sessions are opened in admission->worker. While orphaned work (orphaned_work.h)
 * runs there, they are opened in another worker that is SERVING, or in a new one. A worker that
 * gets no new sessions exits after its last session, or is selected again when the current one
 * becomes BUSY; so there are at most the WEDGED ones and one more. In addition there are dedicated
 * workers, started by the admission for single sessions, and the configured number of spare ones,
 * which are used first. After an exit the admission notifies the sessions, and another worker is
 * started automatically.
 *
 * Ownership: gpd_worker_pool_init() to gpd_worker_pool_fini(). The pool starts and destroys
 * workers; admission->workers is their list.
 * Threads: the supervisor's main thread. Only gpd_worker_pool_fini() blocks.
 * Units: times are milliseconds of gp_now_ms().
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

/* The pool. */
struct gpd_worker_pool {
	const struct gpd_options *options; /* borrowed; must outlive the pool */
	struct gpd_admission *admission;   /* contains the list of workers; must outlive the pool */
	struct gpd_quota *quota;
	int64_t start_ms;   /* earliest time to start another shared worker */
	int64_t spare_ms;   /* earliest time to start another spare worker */
	int64_t checked_ms; /* time of the last gpd_worker_pool_check() */
	int early_exits;    /* number of successive workers that exited soon after their start */
	bool served;        /* a worker has been ready at least once */
	/* The first worker failed to start; the reason has been written to standard error. */
	bool start_failed;
	bool stopping; /* no more workers are started */
};

/* Initializes the pool without starting a worker, and registers it with the admission as the source
 * of dedicated workers. *children must not move afterwards. */
void gpd_worker_pool_init(struct gpd_worker_pool *children, const struct gpd_options *options,
			  struct gpd_admission *admission);
/* Kills and reaps all remaining workers, and waits for their exits. */
void gpd_worker_pool_fini(struct gpd_worker_pool *children);

/* Fills fds, of GPD_WORKERS_MAX entries, for poll(). Returns the number of entries. */
int gpd_worker_pool_poll(struct gpd_worker_pool *children, struct pollfd *fds);
/* Handles the workers' messages after poll(). fds: as filled by gpd_worker_pool_poll(). Workers may
 * be started, but none is removed. */
void gpd_worker_pool_serve(struct gpd_worker_pool *children, const struct pollfd *fds);
/* Reaps workers that have exited, without blocking, and ends their sessions. Called after
 * SIGCHLD. */
void gpd_worker_pool_reap(struct gpd_worker_pool *children);
/* Called in each iteration of the loop: kills workers past their deadline, and starts those that
 * are due. */
void gpd_worker_pool_check(struct gpd_worker_pool *children, int64_t now_ms);

/* Requests all workers to exit, without waiting for them; no more workers are started. */
void gpd_worker_pool_stop(struct gpd_worker_pool *children);
/* Retires the worker with this process ID: it gets no new sessions, and exits after its last one.
 * If it was the worker for new sessions, all other shared and spare workers are retired as well. A
 * dedicated worker exits after its session anyway. Returns false if there is no such worker, or it
 * is starting or ending. */
bool gpd_worker_pool_retire(struct gpd_worker_pool *children, pid_t worker);

#endif /* GPD_WORKER_POOL_H */
