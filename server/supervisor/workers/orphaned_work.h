/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphaned work: GPU work of disconnected clients that still runs. Records such work of each worker
 * and session, and selects the worker to kill if a tenant has work in too many wedged ones.
 * Programs that leave such work repeatedly are isolated by quarantine.h.
 *
 * Workers report orphaned work by GPD_CHANNEL_BUSY (channel.h). worker_pool.c sets a worker in
 * which it runs for too long to GPD_WORKER_WEDGED.
 *
 * Ownership: the number of a worker is in struct gpd_worker_process, the sessions are marked in the
 * ledger. `list` is the list of all workers.
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_ORPHANED_WORK_H
#define GPD_ORPHANED_WORK_H

#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/worker_process.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum number of workers that are GPD_WORKER_WEDGED at a time with orphaned work of the same
 * tenant. The limit exists because their contexts occupy device memory that is charged to no
 * tenant. */
#define GPD_WEDGED_WORKERS_MAX 4

/* Handles GPD_CHANNEL_BUSY of the worker: orphaned work of a session has started (result not 0) or
 * ended (0). Called before the session's ledger entry is closed, in which it is marked. Changes the
 * worker's count, not its state. */
void gpd_orphaned_work_update(struct gpd_worker_process *process, struct gpd_ledger *ledger,
			      const struct gpd_channel_message *message);

/* Iterates over the sessions of the worker whose orphaned work runs. Returns the first one after
 * `previous` (NULL: the first of all), borrowed from the ledger; NULL: there are no more. */
const struct gpd_ledger_session *gpd_orphaned_work_next(const struct gpd_worker_process *process,
							const struct gpd_ledger *ledger,
							const struct gpd_ledger_session *previous);

/* Called after the worker `process` has become WEDGED. If a tenant with orphaned work in it has
 * such work in more than GPD_WEDGED_WORKERS_MAX WEDGED workers, returns the one of them that has
 * been WEDGED for the longest time, else NULL. */
struct gpd_worker_process *gpd_orphaned_work_find_victim(struct gpd_worker_process *list,
							 const struct gpd_worker_process *process,
							 const struct gpd_ledger *ledger);

/* Writes the names of the tenants with orphaned work in the worker, separated by commas and
 * truncated to size bytes; "" if there are none. */
void gpd_orphaned_work_format_tenants(const struct gpd_worker_process *process,
				      const struct gpd_ledger *ledger, char *text, size_t size);

#endif /* GPD_ORPHANED_WORK_H */
