/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the worker for driver calls that wait until every kernel on the device has ended
 * (unloading code), so that neither an executor nor a responder stands still in one.  It is there
 * while there are jobs.  Jobs run one after another, in the order in which they were given, and
 * belong to no session: they may outlive it.  Any thread.
 */
#ifndef GPD_QUIET_JOBS_H
#define GPD_QUIET_JOBS_H

#include <stdbool.h>

typedef void gpd_quiesce_job(void *arg);

/* Runs it in place when memory is short. */
void gpd_quiesce_jobs_add(gpd_quiesce_job *job, void *arg);

/* A job, before such a call: waits for a quiet moment (quiet.h) of all devices, for while the call
 * waits for kernels nobody's launches get through.  false: there is work that does not end; the job
 * is to be run again. */
bool gpd_quiesce_jobs_try(void);

/* Until no job is waiting or running.  Not from a job. */
void gpd_quiesce_jobs_wait(void);

#endif /* GPD_QUIET_JOBS_H */
