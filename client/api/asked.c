/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/asked.h"

#include "base/lock.h"

#include <pthread.h>
#include <string.h>

struct answer {
	struct gpc_asked asked; /* call 0: none */
	uint64_t words[GPC_ASKED_WORDS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* A new one takes the oldest one's place. */
static struct answer answers[GPC_ASKED_MAX] GP_GUARDED_BY(lock);
static unsigned int next GP_GUARDED_BY(lock);

bool
gpc_asked_find(const struct gpc_asked *asked, uint64_t words[GPC_ASKED_WORDS])
{
	bool found = false;

	(void)pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < GPC_ASKED_MAX && !found; i++) {
		found = memcmp(&answers[i].asked, asked, sizeof(*asked)) == 0;
		if (found)
			memcpy(words, answers[i].words, sizeof(answers[i].words));
	}
	(void)pthread_mutex_unlock(&lock);
	return found;
}

void
gpc_asked_keep(const struct gpc_asked *asked, const uint64_t words[GPC_ASKED_WORDS])
{
	if (asked->call == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	answers[next].asked = *asked;
	memcpy(answers[next].words, words, sizeof(answers[next].words));
	next = (next + 1) % GPC_ASKED_MAX;
	(void)pthread_mutex_unlock(&lock);
}
