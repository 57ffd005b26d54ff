/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups of workers (cgroup version 2): a worker that needs too much memory of the machine
 * is ended by the kernel alone, and processors are divided equally among workers.
 *
 * They exist only where the daemon's own control group is delegated to it, as by Delegate=yes of
 * systemd: the daemon is the only process in it and may create groups below. The supervisor moves
 * itself to the group "supervisor", because a group with subgroups must not contain processes. Each
 * worker has the group "worker-PID" until it has been reaped.
 *
 * Ownership: gpd_worker_cgroups_open() to gpd_worker_cgroups_close().
 * Threads: the supervisor's main thread. No function blocks.
 * Errors: a worker whose group cannot be created or limited runs without, and a warning is logged.
 * Units: bytes.
 */
#ifndef GPD_WORKER_CGROUP_H
#define GPD_WORKER_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_ledger;
struct gpd_worker_process;

/* Size in bytes of the buffer for the reason why there are no groups. */
#define GPD_CGROUP_REASON_MAX 160

/* The groups of all workers. */
struct gpd_worker_cgroups {
	int folder; /* descriptor of the daemon's group, owned; -1: workers have no groups */
};

/* Opens the daemon's group and moves the process to the group "supervisor". root: prefix of the
 * paths /proc and /sys: "" for the machine, or a test's directory. If there can be no groups,
 * folder is -1, and the reason is written to `reason`, of GPD_CGROUP_REASON_MAX bytes; else "".
 * Called after the process has changed its user and before it starts workers. */
void gpd_worker_cgroups_open(struct gpd_worker_cgroups *cgroups, const char *root, char *reason);
/* Closes the descriptor. The group "supervisor" stays. */
void gpd_worker_cgroups_close(struct gpd_worker_cgroups *cgroups);

/* Creates the group of a worker that has just been started, without a limit, and moves the worker
 * to it. */
void gpd_worker_cgroup_create(const struct gpd_worker_cgroups *cgroups, pid_t worker);
/* Removes the group of a worker that has been reaped. */
void gpd_worker_cgroup_destroy(const struct gpd_worker_cgroups *cgroups, pid_t worker);
/* Returns the memory that a worker may use: the host memory of the tenants that it serves, and a
 * margin for the driver and its compilers. devices: number of devices. machine: memory of the
 * machine, or of the daemon's control group; if the worker may use more, the result is half of it:
 * the kernel then ends the worker before all is in use, when it may end more than one, because
 * shared memory is not free until a process has exited. GPD_NO_LIMIT: no limit, or the worker is
 * spare. */
uint64_t gpd_worker_cgroup_memory_max(const struct gpd_ledger *ledger,
				      const struct gpd_worker_process *process,
				      unsigned int devices, uint64_t machine);
/* Limits the worker's memory if bytes differs from process->memory_max, and stores it there. */
void gpd_worker_cgroup_limit(const struct gpd_worker_cgroups *cgroups,
			     struct gpd_worker_process *process, uint64_t bytes);

#endif /* GPD_WORKER_CGROUP_H */
