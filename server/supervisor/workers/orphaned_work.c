/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/orphaned_work.h"

#include <stdio.h>

void
gpd_orphaned_work_update(struct gpd_worker_process *process, struct gpd_ledger *ledger,
			 const struct gpd_channel_message *message)
{
	/* The ledger entry still exists: it is closed when the worker reports the end of the
	 * session, which comes later. */
	struct gpd_ledger_session *entry = gpd_ledger_find(ledger, message->header.session);
	bool starts = message->header.result != 0;

	if (!entry || entry->worker != process->pid || entry->orphaned == starts)
		return;
	process->orphaned += starts ? 1 : -1;
	entry->orphaned = starts;
}

const struct gpd_ledger_session *
gpd_orphaned_work_next(const struct gpd_worker_process *process, const struct gpd_ledger *ledger,
		       const struct gpd_ledger_session *previous)
{
	do {
		previous = gpd_ledger_next(ledger, previous, process->pid);
	} while (previous && !previous->orphaned);
	return previous;
}

static bool
worker_has_tenant(const struct gpd_worker_process *process, const struct gpd_ledger *ledger,
		  uint32_t tenant)
{
	const struct gpd_ledger_session *entry = NULL;

	while ((entry = gpd_orphaned_work_next(process, ledger, entry))) {
		if (entry->tenant == tenant)
			return true;
	}
	return false;
}

static struct gpd_worker_process *
find_victim_of_tenant(struct gpd_worker_process *list, const struct gpd_ledger *ledger,
		      uint32_t tenant)
{
	struct gpd_worker_process *oldest = NULL;
	int count = 0;

	for (struct gpd_worker_process *process = list; process; process = process->next) {
		if (process->state != GPD_WORKER_WEDGED ||
		    !worker_has_tenant(process, ledger, tenant))
			continue;
		count++;
		if (!oldest || process->state_ms < oldest->state_ms)
			oldest = process;
	}
	return count > GPD_WEDGED_WORKERS_MAX ? oldest : NULL;
}

struct gpd_worker_process *
gpd_orphaned_work_find_victim(struct gpd_worker_process *list,
			      const struct gpd_worker_process *process,
			      const struct gpd_ledger *ledger)
{
	const struct gpd_ledger_session *entry = NULL;
	struct gpd_worker_process *victim = NULL;

	while (!victim && (entry = gpd_orphaned_work_next(process, ledger, entry)))
		victim = find_victim_of_tenant(list, ledger, entry->tenant);
	return victim;
}

void
gpd_orphaned_work_format_tenants(const struct gpd_worker_process *process,
				 const struct gpd_ledger *ledger, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS && used < size; i++) {
		if (worker_has_tenant(process, ledger, i))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 ledger->tenants[i].name);
	}
}
