/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Background thread for driver calls that wait until all kernels on the device have ended, such as
 * unloading code, so that they block neither an executor nor a responder. It exists while there are
 * jobs. Jobs run one at a time, in the order in which they were added.
 *
 * Ownership: jobs do not belong to a session and may outlive it; the job frees its arg.
 * Threads: any.
 */
#ifndef GPD_IDLE_JOBS_H
#define GPD_IDLE_JOBS_H

#include <stdbool.h>

typedef void gpd_quiesce_job(void *arg);

/* Adds a job; runs it in the calling thread if memory or a thread is not available. */
void gpd_quiesce_jobs_add(gpd_quiesce_job *job, void *arg);

/* Called by a job before such a driver call: waits until all devices are idle (idle.h), because
 * the driver blocks launches while it waits. Returns false if some work does not end; the job must
 * be added again. */
bool gpd_quiesce_jobs_try(void);

/* Waits until no job is waiting or running. Not to be called by a job. */
void gpd_quiesce_jobs_wait(void);

#endif /* GPD_IDLE_JOBS_H */
