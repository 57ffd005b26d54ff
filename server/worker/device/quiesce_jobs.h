/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Background thread for driver calls that wait until all kernels on the device have ended, such as
 * unloading code, so that they block neither an executor nor a responder. The thread exists while
 * there are jobs. Jobs run one at a time, in the order in which they were added.
 *
 * Ownership: jobs do not belong to a session and may outlive it; a job frees its arg.
 * Threads: any.
 */
#ifndef GPD_QUIESCE_JOBS_H
#define GPD_QUIESCE_JOBS_H

#include <stdbool.h>

/* A job; called once, in the background thread, or by gpd_quiesce_jobs_add() itself. It cannot rely
 * on a current device. */
typedef void gpd_quiesce_job(void *arg);

/* Adds a job. If memory or a thread is not available, runs the job in the calling thread before it
 * returns; the caller must therefore hold no lock that the job acquires, and the job may change the
 * current device. A job that adds itself again then runs recursively. */
void gpd_quiesce_jobs_add(gpd_quiesce_job *job, void *arg);

/* Called by a job before such a driver call: blocks as gpd_quiesce_try() (quiesce.h) until all
 * devices are nearly idle, because the driver blocks launches while it waits. Changes the current
 * device. Returns true if all are nearly idle; false if one was not for gpd_quiesce_limit_ns, or
 * the worker noticed the loss of the GPU during the wait. A device that cannot be made current
 * counts as nearly idle. After false the job must add itself again and return, so that other jobs
 * run meanwhile. */
bool gpd_quiesce_jobs_try(void);

/* Waits without limit until no job is waiting or running. Must not be called by a job. */
void gpd_quiesce_jobs_wait(void);

#endif /* GPD_QUIESCE_JOBS_H */
