/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor process: listens, authenticates and admits clients, and manages worker processes.
 * It never uses CUDA itself.
 *
 * One thread runs the poll() loop; the other threads are the receivers of connection.h and the
 * metrics server's (metrics.h). admission.h handles the clients, worker_pool.h the workers.
 *
 * Threads: the main thread of the process, before any other thread exists.
 */
#ifndef GPD_SUPERVISOR_H
#define GPD_SUPERVISOR_H

struct gpd_options;

/* Runs until SIGTERM or SIGINT stops the supervisor, or startup fails; SIGHUP reloads the
 * configuration (reload.h). Blocks these signals, ignores SIGPIPE and switches to the daemon's
 * user, for the whole process. Returns the exit status of the process: 0, or 1 after printing the
 * reason to standard error. options must stay valid until then. Called once. */
int gpd_supervisor_run(const struct gpd_options *options);

#endif /* GPD_SUPERVISOR_H */
