/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the worker for driver calls that may wait for the whole device (unmapping memory,
 * unloading code), so that neither an executor nor a responder stands still in one.  Jobs run one
 * after another, in the order in which they were given.  Any thread.
 */
#ifndef GPD_JANITOR_H
#define GPD_JANITOR_H

typedef void gpd_janitor_job(void *arg);

/* owner: whose job it is, for gpd_janitor_wait().  Runs it in place when memory is short. */
void gpd_janitor_run(const void *owner, gpd_janitor_job *job, void *arg);

/* Until no job of this owner is waiting or running.  Not from a job. */
void gpd_janitor_wait(const void *owner);

#endif /* GPD_JANITOR_H */
