/* SPDX-License-Identifier: Apache-2.0 */
#include "server/culprit.h"

#include "server/ledger.h"
#include "server/session.h"
#include "server/worker.h"

#include <stdio.h>

/* Who has launched has a lane. */
static bool
is_culprit(const struct gpd_session *s)
{
	return atomic_load(&s->account.line->counts.launches) > 0 &&
	       __atomic_load_n(&s->work, __ATOMIC_RELAXED) > atomic_load(&s->done_work);
}

struct gpd_session *
gpd_culprit_find(char *text, size_t size)
{
	struct gpd_session *culprit = NULL;
	size_t used = 0;
	int count = 0;

	text[0] = 0;
	for (struct gpd_session *s = gpd_worker.sessions; s; s = s->next) {
		const char *kernel = __atomic_load_n(&s->kernel, __ATOMIC_ACQUIRE);

		if (!is_culprit(s) || used >= size - 1)
			continue;
		culprit = s;
		used += (size_t)snprintf(text + used, size - used, "%ssession %llu (%s)%s%s",
					 count++ ? ", " : "", (unsigned long long)s->id, s->peer,
					 kernel ? ", last kernel " : "", kernel ? kernel : "");
		if (used >= size)
			used = size - 1;
	}
	return count == 1 ? culprit : NULL;
}

void
gpd_culprit_tell(char *text, size_t size)
{
	pthread_mutex_lock(&gpd_worker.lock);
	(void)gpd_culprit_find(text, size);
	pthread_mutex_unlock(&gpd_worker.lock);
	if (!text[0])
		(void)snprintf(text, size, "no session");
}
