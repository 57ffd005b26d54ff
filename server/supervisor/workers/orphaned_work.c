/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/orphaned_work.h"

#include "server/common/base/log.h"

#include <stdio.h>

void
gpd_orphaned_work_update(struct gpd_worker_process *process, struct gpd_ledger *ledger,
			 const struct gpd_channel_message *message)
{
	/* The ledger entry still exists: it is closed when the worker reports the end of the
	 * session, which comes later. */
	const struct gpd_ledger_session *entry = gpd_ledger_find(ledger, message->header.session);
	int change = message->header.result ? 1 : -1;

	process->orphaned += change;
	if (entry)
		process->orphaned_by_tenant[entry->tenant] += change;
}

struct gpd_worker_process *
gpd_orphaned_work_find_victim(struct gpd_worker_process *list)
{
	struct gpd_worker_process *oldest = NULL;
	int count = 0;

	for (struct gpd_worker_process *process = list; process; process = process->next) {
		if (process->state != GPD_WORKER_WEDGED)
			continue;
		count++;
		if (!oldest || process->state_ms < oldest->state_ms)
			oldest = process;
	}
	return count > GPD_WEDGED_WORKERS_MAX ? oldest : NULL;
}

/* Returns whether the tenant's work runs on in at least GPD_WEDGED_REPEATED WEDGED workers. */
static bool
tenant_is_repeated(const struct gpd_worker_process *list, uint32_t tenant)
{
	int count = 0;

	for (; list; list = list->next)
		count += list->state == GPD_WORKER_WEDGED && list->orphaned_by_tenant[tenant] > 0;
	return count >= GPD_WEDGED_REPEATED;
}

void
gpd_orphaned_work_isolate_tenants(const struct gpd_worker_process *list,
				  const struct gpd_worker_process *process,
				  struct gpd_ledger *ledger, int64_t now_ms)
{
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (process->orphaned_by_tenant[i] <= 0 || !tenant_is_repeated(list, i))
			continue;
		ledger->tenants[i].isolated_until_ms = now_ms + GPD_WEDGED_ISOLATE_MS;
		gpd_warning("tenant %s: orphaned work in at least %d workers; new sessions get "
			    "dedicated workers until %d minutes after it ends",
			    ledger->tenants[i].name, GPD_WEDGED_REPEATED,
			    GPD_WEDGED_ISOLATE_MS / 60000);
	}
}

bool
gpd_orphaned_work_is_isolated(const struct gpd_worker_process *list,
			      const struct gpd_ledger *ledger, uint32_t tenant, int64_t now_ms)
{
	return now_ms < ledger->tenants[tenant].isolated_until_ms ||
	       tenant_is_repeated(list, tenant);
}

void
gpd_orphaned_work_format_tenants(const struct gpd_worker_process *process,
				 const struct gpd_ledger *ledger, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < GPD_LEDGER_TENANTS && used < size; i++) {
		if (process->orphaned_by_tenant[i] > 0)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 ledger->tenants[i].name);
	}
}
