/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of worker processes: starts them, selects the one for new sessions, and handles their
 * exits.
 *
 * New sessions of a worker group (tenants.h) are opened in one worker, admission->selected[group],
 * which is called the selected one. It is started, or taken from the reserve, when a client waits
 * for it, and retired when it has had no session for the configured time, unless it is the last
 * one. States such as BUSY are those of worker_process.h. While orphaned work (orphaned_work.h)
 * runs in it, the worker is BUSY, and new sessions of its group go to another worker of the group
 * that is SERVING; if there is none, they wait. A worker that is BUSY for 2 s becomes WEDGED; if no
 * other worker is SERVING, another one is started. When its orphaned work has ended, a worker is
 * SERVING again: it is selected if the current one becomes BUSY, and retired when it has no
 * session.
 *
 * A session of class "session" gets a dedicated worker, which the admission requests: a spare one
 * that is ready, else a spare one that is starting, else a new one.
 *
 * Spare workers are kept in reserve: for each device the configured number, and one more on the
 * first device while no worker of several sessions serves, so that the first session does not wait
 * for a start. The last one on a device is left to tenants that have taken none recently.
 *
 * A worker may use the devices that its sessions may use (gpd_tenants_get_usable()). It starts with
 * a context on the one that its first session probably uses first, and creates others when they are
 * used. The number of workers with a context on a device is limited: each has a place there
 * (worker_pool_places.c). A worker that lacks a device, because it has been allowed or enabled
 * since, is replaced.
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
#include "server/supervisor/workers/worker_cgroup.h"
#include "server/supervisor/workers/worker_process.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The pool. */
struct gpd_worker_pool {
	const struct gpd_options *options; /* borrowed; must outlive the pool */
	struct gpd_admission *admission;   /* contains the list of workers; must outlive the pool */
	/* The admission's; contains the ledger and the configuration. */
	struct gpd_quota *quota;
	/* By worker group (tenants.h). */
	struct {
		int64_t start_ms;    /* earliest time to start another worker; 0: now */
		int64_t acquired_ms; /* when it has got a worker last; 0: never */
		/* Number of successive workers that exited before they were ready. */
		int early_exits;
	} groups[GPD_GROUPS];
	int64_t spare_ms; /* earliest time to start another spare worker; 0: now */
	/* Earliest time to find out again whether a context can be created on a suspect device; 0:
	 * now. */
	int64_t probe_ms[GPD_LEDGER_DEVICES];
	int64_t limited_ms; /* time at which limits of control groups were set; 0: never */
	int64_t checked_ms; /* time of the last gpd_worker_pool_check(); 0: none */
	bool served;        /* a worker has been ready at least once */
	/* The first worker failed to start: the supervisor must exit. The reason has been printed
	 * to standard error. */
	bool start_failed;
	bool stopping; /* no more workers are started; set by gpd_worker_pool_stop() */
	/* Control groups; opened and closed by the owner of the pool. */
	struct gpd_worker_cgroups cgroups;
};

/* Initializes the pool without starting a worker, and registers it with the admission as the source
 * of dedicated workers. Called after gpd_admission_init(). *pool must not move afterwards. */
void gpd_worker_pool_init(struct gpd_worker_pool *pool, const struct gpd_options *options,
			  struct gpd_admission *admission);
/* Kills all remaining workers, waits for their exits, and frees them. Their sessions stay in the
 * ledger. Called before gpd_admission_fini(). */
void gpd_worker_pool_fini(struct gpd_worker_pool *pool);

/* Fills fds, of GPD_WORKERS_MAX entries, for poll(). Returns the number of entries. */
int gpd_worker_pool_poll(struct gpd_worker_pool *pool, struct pollfd *fds);
/* Called after poll(): sends queued messages to the workers and handles theirs. fds: as filled by
 * gpd_worker_pool_poll() in the same iteration. May start workers, but destroys none. */
void gpd_worker_pool_serve(struct gpd_worker_pool *pool, const struct pollfd *fds);
/* Reaps the workers that have exited, without blocking, ends their sessions and frees them. Called
 * after SIGCHLD. */
void gpd_worker_pool_reap(struct gpd_worker_pool *pool);
/* Called in each iteration of the loop: kills workers past their deadline, handles workers that
 * hang (heartbeat.h), and selects, starts and retires workers as described at the start of this
 * file. */
void gpd_worker_pool_check(struct gpd_worker_pool *pool, int64_t now_ms);

/* Requests all workers to exit, without waiting for them; no more workers are started. */
void gpd_worker_pool_stop(struct gpd_worker_pool *pool);
/* Retires the worker with this process ID, and unless it is dedicated or retired already, all spare
 * ones: they get no new sessions, and exit after their last one. Does not wait. A dedicated worker
 * exits after its session anyway. Returns false, and retires none, if there is no such worker, or
 * it is STARTING, ABANDONED, LOST or ENDING. */
bool gpd_worker_pool_retire(struct gpd_worker_pool *pool, pid_t worker);

/* Ends the sessions of all workers with a context on the device, which has become sick: their
 * clients get the reason. Kills the workers, and logs it. Does not wait. */
void gpd_worker_pool_end_device(struct gpd_worker_pool *pool, int device);

#endif /* GPD_WORKER_POOL_H */
