/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/running_work.h"

#include "base/lock.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"

#include <stdio.h>

/* Nothing of it is given back. */
static bool
has_work_yet(const struct gpd_session *s)
{
	return atomic_load(&s->state) <= GPD_SESSION_DRAINING;
}

/* Who has launched has a lane. */
static bool
is_culprit(const struct gpd_session *s)
{
	return has_work_yet(s) && atomic_load(&s->account.line->counts.launches) > 0 &&
	       __atomic_load_n(&s->work, __ATOMIC_RELAXED) > atomic_load(&s->done_work);
}

struct list {
	char *text;
	size_t size, used;
	int count;
	struct gpd_session *last;
};

static void
add_culprits(struct list *list, struct gpd_session *sessions)
{
	for (struct gpd_session *s = sessions; s; s = s->next) {
		const char *kernel = __atomic_load_n(&s->kernel, __ATOMIC_ACQUIRE);

		if (!is_culprit(s))
			continue;
		list->last = s;
		list->count++;
		if (list->used >= list->size - 1)
			continue;
		list->used += (size_t)snprintf(
			list->text + list->used, list->size - list->used, "%ssession %llu (%s)%s%s",
			list->count > 1 ? ", " : "", (unsigned long long)s->id, s->peer,
			kernel ? ", last kernel " : "", kernel ? kernel : "");
		if (list->used >= list->size)
			list->used = list->size - 1;
	}
}

struct gpd_session *
gpd_running_work_find(char *text, size_t size)
{
	struct list list = { .text = text, .size = size };

	text[0] = 0;
	add_culprits(&list, gpd_sessions.first);
	return list.count == 1 ? list.last : NULL;
}

/* NULL: there are others, or none. */
static struct gpd_session *
find_only_one(void) GP_LOCKED(gpd_sessions.lock)
{
	struct gpd_session *only = NULL;

	for (struct gpd_session *s = gpd_sessions.first; s; s = s->next) {
		if (!has_work_yet(s))
			continue;
		if (only)
			return NULL;
		only = s;
	}
	return only;
}

uint32_t
gpd_running_work_tell(char *text, size_t size)
{
	struct gpd_session *about;
	uint32_t budget;

	pthread_mutex_lock(&gpd_sessions.lock);
	about = gpd_running_work_find(text, size);
	if (!text[0])
		about = find_only_one();
	budget = about ? about->account.line->log_budget
		       : gpd_log_budget_of(GPD_LOG_BUDGET_SESSIONS, "sessions that share a worker");
	pthread_mutex_unlock(&gpd_sessions.lock);
	if (!text[0])
		(void)snprintf(text, size, "no session");
	return budget;
}
