/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/workers/orphans.h"

#include <stdio.h>

void
gpd_orphans_note(struct gpd_child *child, struct gpd_ledger *ledger,
		 const struct gpd_channel_message *message)
{
	/* Its line is closed when the worker says that the session is, which comes later. */
	const struct gpd_ledger_session *line = gpd_ledger_find(ledger, message->header.session);
	int change = message->header.result ? 1 : -1;

	child->busy += change;
	if (line)
		child->left[line->tenant] += change;
}

static bool
counts(const struct gpd_child *child)
{
	return child->left_ms && child->busy > 0;
}

int
gpd_orphans_count(const struct gpd_child *list)
{
	int count = 0;

	for (; list; list = list->next)
		count += counts(list);
	return count;
}

struct gpd_child *
gpd_orphans_find_idle(struct gpd_child *list)
{
	struct gpd_child *oldest = NULL;

	for (struct gpd_child *child = list; child; child = child->next) {
		if (child->left_ms && child->may_return && child->busy <= 0 &&
		    !child->channel_closed && (!oldest || child->left_ms < oldest->left_ms))
			oldest = child;
	}
	return oldest;
}

/* Whether tenants have sessions there that have left nothing. */
static bool
has_neighbours(const struct gpd_child *child, const struct gpd_ledger *ledger)
{
	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		const struct gpd_ledger_session *line = &ledger->sessions[i];

		if (atomic_load(&line->id) && line->worker == child->pid &&
		    !child->left[line->tenant])
			return true;
	}
	return false;
}

/* The oldest; alone: of those without neighbours.  NULL: there is none. */
static struct gpd_child *
find_oldest(struct gpd_child *list, const struct gpd_ledger *ledger, bool alone)
{
	struct gpd_child *oldest = NULL;

	for (struct gpd_child *child = list; child; child = child->next) {
		if (counts(child) && (!oldest || child->left_ms < oldest->left_ms) &&
		    !(alone && has_neighbours(child, ledger)))
			oldest = child;
	}
	return oldest;
}

/* In how many its work goes on. */
static int
count_of(const struct gpd_child *list, uint32_t tenant)
{
	int count = 0;

	for (; list; list = list->next)
		count += counts(list) && list->left[tenant] > 0;
	return count;
}

struct gpd_child *
gpd_orphans_choose(struct gpd_child *list, const struct gpd_ledger *ledger)
{
	struct gpd_child *alone = find_oldest(list, ledger, true);
	int count = gpd_orphans_count(list);

	if (alone)
		return alone;
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (count > GPD_ORPHANS_WORKERS_MAX && count_of(list, i) == count)
			return NULL;
	}
	return find_oldest(list, ledger, false);
}

bool
gpd_orphans_shuts_out(struct gpd_child *list, const struct gpd_ledger *ledger, uint32_t tenant)
{
	return count_of(list, tenant) >= GPD_ORPHANS_WORKERS_MAX &&
	       !find_oldest(list, ledger, true);
}

void
gpd_orphans_owners(const struct gpd_child *child, const struct gpd_ledger *ledger, char *text,
		   size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < GPD_LEDGER_TENANTS && used < size; i++) {
		if (child->left[i] > 0)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 ledger->tenants[i].name);
	}
}
