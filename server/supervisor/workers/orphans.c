/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/orphans.h"

#include "server/common/base/log.h"

#include <stdio.h>

void
gpd_orphans_note(struct gpd_child *child, struct gpd_ledger *ledger,
		 const struct gpd_channel_message *message)
{
	/* Its line is closed when the worker says that the session is, which comes later. */
	const struct gpd_ledger_session *line = gpd_ledger_find(ledger, message->header.session);
	int change = message->header.result ? 1 : -1;

	child->orphans += change;
	if (line)
		child->orphans_of[line->tenant] += change;
}

struct gpd_child *
gpd_orphans_choose(struct gpd_child *list)
{
	struct gpd_child *oldest = NULL;
	int count = 0;

	for (struct gpd_child *child = list; child; child = child->next) {
		if (child->state != GPD_CHILD_STUCK)
			continue;
		count++;
		if (!oldest || child->state_ms < oldest->state_ms)
			oldest = child;
	}
	return count > GPD_ORPHANS_WORKERS_MAX ? oldest : NULL;
}

/* Its work goes on in so many workers that are STUCK. */
static bool
repeats(const struct gpd_child *list, uint32_t tenant)
{
	int count = 0;

	for (; list; list = list->next)
		count += list->state == GPD_CHILD_STUCK && list->orphans_of[tenant] > 0;
	return count >= GPD_ORPHANS_REPEATED;
}

void
gpd_orphans_blame(const struct gpd_child *list, const struct gpd_child *child,
		  struct gpd_ledger *ledger, int64_t now_ms)
{
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (child->orphans_of[i] <= 0 || !repeats(list, i))
			continue;
		ledger->tenants[i].own_until_ms = now_ms + GPD_ORPHANS_OWN_MS;
		gpd_warning("tenant %s: work of its clients that are gone goes on in %d workers or "
			    "more: its new sessions get workers of their own, and for %d minutes "
			    "afterwards",
			    ledger->tenants[i].name, GPD_ORPHANS_REPEATED,
			    GPD_ORPHANS_OWN_MS / 60000);
	}
}

bool
gpd_orphans_gives_own(const struct gpd_child *list, const struct gpd_ledger *ledger,
		      uint32_t tenant, int64_t now_ms)
{
	return now_ms < ledger->tenants[tenant].own_until_ms || repeats(list, tenant);
}

void
gpd_orphans_owners(const struct gpd_child *child, const struct gpd_ledger *ledger, char *text,
		   size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < GPD_LEDGER_TENANTS && used < size; i++) {
		if (child->orphans_of[i] > 0)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 ledger->tenants[i].name);
	}
}
