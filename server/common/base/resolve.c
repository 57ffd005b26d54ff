/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/resolve.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Of who waits and of the thread; the last one frees it. */
struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done, left;
	int result;
	struct addrinfo hints, *list;
	char service[32];
	char host[];
};

static void
destroy(struct lookup *lookup)
{
	if (lookup->list)
		freeaddrinfo(lookup->list);
	pthread_cond_destroy(&lookup->changed);
	pthread_mutex_destroy(&lookup->lock);
	free(lookup);
}

static void *
look_up(void *arg)
{
	struct lookup *lookup = arg;
	const char *service = lookup->service[0] ? lookup->service : NULL;
	struct addrinfo *list = NULL;
	int result = getaddrinfo(lookup->host, service, &lookup->hints, &list);
	bool left;

	pthread_mutex_lock(&lookup->lock);
	lookup->result = result;
	lookup->list = result ? NULL : list;
	lookup->done = true;
	left = lookup->left;
	pthread_cond_signal(&lookup->changed);
	pthread_mutex_unlock(&lookup->lock);
	if (left)
		destroy(lookup);
	return NULL;
}

static struct lookup *
create(const char *host, const char *service, const struct addrinfo *hints)
{
	size_t length = strlen(host) + 1;
	struct lookup *lookup = calloc(1, sizeof(*lookup) + length);

	if (!lookup)
		return NULL;
	memcpy(lookup->host, host, length);
	if (service)
		strncpy(lookup->service, service, sizeof(lookup->service) - 1);
	lookup->hints = *hints;
	pthread_mutex_init(&lookup->lock, NULL);
	gp_cond_init(&lookup->changed);
	return lookup;
}

static int
wait_for(struct lookup *lookup, unsigned int timeout_ms, struct addrinfo **list_p)
{
	uint64_t until_ns = gp_now_ns() + timeout_ms * UINT64_C(1000000);
	int result = EAI_AGAIN;
	bool done;

	pthread_mutex_lock(&lookup->lock);
	while (!lookup->done && gp_cond_wait_until(&lookup->changed, &lookup->lock, until_ns))
		;
	done = lookup->done;
	lookup->left = true;
	if (done) {
		result = lookup->result;
		*list_p = lookup->list;
		lookup->list = NULL;
	}
	pthread_mutex_unlock(&lookup->lock);
	if (done)
		destroy(lookup);
	return result;
}

int
gpd_resolve(const char *host, const char *service, const struct addrinfo *hints,
	    unsigned int timeout_ms, struct addrinfo **list_p)
{
	struct addrinfo numeric = *hints;
	struct lookup *lookup;
	int result;

	/* An address needs nobody's answer. */
	numeric.ai_flags |= AI_NUMERICHOST;
	result = getaddrinfo(host, service, &numeric, list_p);
	if (result != EAI_NONAME || !host)
		return result;
	if (!timeout_ms)
		return getaddrinfo(host, service, hints, list_p);
	lookup = create(host, service, hints);
	if (!lookup)
		return EAI_MEMORY;
	if (gp_thread_start("resolve", 0, look_up, lookup)) {
		destroy(lookup);
		return EAI_MEMORY;
	}
	return wait_for(lookup, timeout_ms, list_p);
}
