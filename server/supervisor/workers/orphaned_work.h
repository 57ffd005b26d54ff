/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphaned work: GPU work of disconnected clients that still runs. Counts such work per worker and
 * tenant, selects the worker to kill if too many are wedged, and isolates tenants that cause
 * orphaned work repeatedly: their new sessions get dedicated workers.
 *
 * Workers report orphaned work by GPD_CHANNEL_BUSY (channel.h). worker_pool.c sets a worker in
 * which it runs for too long to GPD_WORKER_WEDGED.
 *
 * Ownership: the counts are in struct gpd_worker_process, the isolation in the ledger. `list` is
 * the list of all workers.
 * Threads: the supervisor's main thread.
 * Units: now_ms is the time of gp_now_ms() in milliseconds.
 */
#ifndef GPD_ORPHANED_WORK_H
#define GPD_ORPHANED_WORK_H

#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/worker_process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of workers that are GPD_WORKER_WEDGED at a time. The limit exists because their
 * contexts occupy device memory that is charged to no tenant. */
#define GPD_WEDGED_WORKERS_MAX 4
/* A tenant with orphaned work in at least GPD_WEDGED_REPEATED wedged workers is isolated while that
 * lasts, and for GPD_WEDGED_ISOLATE_MS milliseconds after the last of them became wedged. */
#define GPD_WEDGED_REPEATED 2
#define GPD_WEDGED_ISOLATE_MS 600000

/* Handles GPD_CHANNEL_BUSY of the worker: orphaned work of a session has started (result not 0) or
 * ended (0). Called before the session's ledger entry is closed, from which it gets the tenant.
 * Changes the worker's counts, not its state. */
void gpd_orphaned_work_update(struct gpd_worker_process *process, struct gpd_ledger *ledger,
			      const struct gpd_channel_message *message);

/* Returns the worker that has been WEDGED for the longest time if there are more than
 * GPD_WEDGED_WORKERS_MAX, else NULL. */
struct gpd_worker_process *gpd_orphaned_work_find_victim(struct gpd_worker_process *list);

/* Called after the worker has become WEDGED: isolates the tenants that have orphaned work in it and
 * in at least GPD_WEDGED_REPEATED wedged workers, this one included, and logs them. */
void gpd_orphaned_work_isolate_tenants(const struct gpd_worker_process *list,
				       const struct gpd_worker_process *process,
				       struct gpd_ledger *ledger, int64_t now_ms);

/* Returns whether new sessions of the tenant, an index in the ledger, get workers of their own
 * because of orphaned work. */
bool gpd_orphaned_work_is_isolated(const struct gpd_worker_process *list,
				   const struct gpd_ledger *ledger, uint32_t tenant,
				   int64_t now_ms);

/* Writes the names of the tenants with orphaned work in the worker, separated by commas and
 * truncated to size bytes; "" if there are none. */
void gpd_orphaned_work_format_tenants(const struct gpd_worker_process *process,
				      const struct gpd_ledger *ledger, char *text, size_t size);

#endif /* GPD_ORPHANED_WORK_H */
