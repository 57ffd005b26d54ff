/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/resolve.h"

#include "server/common/base/clock.h"

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
	pthread_condattr_t attributes;

	if (!lookup)
		return NULL;
	memcpy(lookup->host, host, length);
	if (service)
		strncpy(lookup->service, service, sizeof(lookup->service) - 1);
	lookup->hints = *hints;
	pthread_mutex_init(&lookup->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&lookup->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return lookup;
}

static bool
start(struct lookup *lookup)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool started;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&thread, &attributes, look_up, lookup);
	pthread_attr_destroy(&attributes);
	return started;
}

static int
wait_for(struct lookup *lookup, unsigned int timeout_ms, struct addrinfo **list_p)
{
	uint64_t until_ns = gpd_now_ns() + timeout_ms * UINT64_C(1000000);
	const struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
					.tv_nsec = (long)(until_ns % 1000000000) };
	int result = EAI_AGAIN;
	bool done;

	pthread_mutex_lock(&lookup->lock);
	while (!lookup->done &&
	       pthread_cond_timedwait(&lookup->changed, &lookup->lock, &until) != ETIMEDOUT)
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
	if (!start(lookup)) {
		destroy(lookup);
		return EAI_MEMORY;
	}
	return wait_for(lookup, timeout_ms, list_p);
}
