/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: listens, admits clients, keeps a worker running, and touches no CUDA.
 *
 * One thread does all of that, woken by poll; the only others are the receivers of peer.h.  What
 * concerns clients is in admission.h, the workers are those of children.h.
 */
#ifndef GPD_SUPERVISOR_H
#define GPD_SUPERVISOR_H

struct gpd_options;

/* Serves until a signal says to stop; returns the exit status. */
int gpd_supervisor_run(const struct gpd_options *options);

#endif /* GPD_SUPERVISOR_H */
