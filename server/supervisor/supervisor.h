/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor process: listens, authenticates and admits clients, and manages worker processes.
 * It never uses CUDA itself.
 *
 * One thread runs the poll() loop; the only other threads are the receivers of connection.h.
 * admission.h handles the clients, worker_pool.h the workers.
 */
#ifndef GPD_SUPERVISOR_H
#define GPD_SUPERVISOR_H

struct gpd_options;

/* Runs until a signal stops it, or startup fails. Returns the exit status. */
int gpd_supervisor_run(const struct gpd_options *options);

#endif /* GPD_SUPERVISOR_H */
