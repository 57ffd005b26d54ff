/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of clients that are gone, as the supervisor sees it: in which workers it goes on, whose
 * it is, which worker ends when there are too many, and who gets workers of its own because of it.
 *
 * What a worker says of it (GPD_CHANNEL_BUSY) is counted in its gpd_worker_process, by tenants;
 * workers in which it goes on for too long are STUCK.  Main thread only.
 */
#ifndef GPD_ORPHANS_H
#define GPD_ORPHANS_H

#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many workers may be STUCK at a time.  A context takes device memory that counts for nobody, so
 * there must not be any number of them. */
#define GPD_WEDGED_WORKERS_MAX 4
/* A tenant whose work goes on in so many of them gets workers of its own for its new sessions, and
 * for this time afterwards. */
#define GPD_WEDGED_REPEATED 2
#define GPD_WEDGED_ISOLATE_MS 600000

/* Such work of a session goes on for longer than usual, or has ended. */
void gpd_orphaned_work_update(struct gpd_worker_process *child, struct gpd_ledger *ledger,
			      const struct gpd_channel_message *message);

/* The one that has been STUCK for longest, if there are too many; else NULL. */
struct gpd_worker_process *gpd_orphaned_work_find_victim(struct gpd_worker_process *list);

/* The worker is STUCK now: those tenants with work there that have done it repeatedly get workers
 * of their own, and the log says so. */
void gpd_orphaned_work_isolate_tenants(const struct gpd_worker_process *list,
				       const struct gpd_worker_process *child,
				       struct gpd_ledger *ledger, int64_t now_ms);

/* Whether the tenant's new sessions get workers of their own because of that. */
bool gpd_orphaned_work_is_isolated(const struct gpd_worker_process *list,
				   const struct gpd_ledger *ledger, uint32_t tenant,
				   int64_t now_ms);

/* The names of the tenants whose work it is, with commas between; some of them if there is not
 * room for all. */
void gpd_orphaned_work_format_tenants(const struct gpd_worker_process *child,
				      const struct gpd_ledger *ledger, char *text, size_t size);

#endif /* GPD_ORPHANS_H */
