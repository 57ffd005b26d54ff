/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/shared_pages.h"

#include "base/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <utlist.h>

/* Bytes copied at a time; the program may store to this part while it is copied. */
#define STEP ((size_t)256 << 10)

struct pages {
	struct pages *next;
	const struct gpc_session *session;
	uint64_t address;
	size_t size;
};

static struct {
	pthread_mutex_t lock;
	struct pages *first; /* utlist */
} shared_pages = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint8_t *
address_to_pointer(uint64_t address)
{
	return (uint8_t *)(uintptr_t)address;
}

void
gpc_shared_pages_add(const struct gpc_session *session, uint64_t address, size_t size)
{
	struct pages *pages = malloc(sizeof(*pages));

	/* If memory is exhausted, the pages are lost with the session. */
	if (!pages)
		return;
	*pages = (struct pages){ .session = session, .address = address, .size = size };
	(void)pthread_mutex_lock(&shared_pages.lock);
	LL_PREPEND(shared_pages.first, pages);
	(void)pthread_mutex_unlock(&shared_pages.lock);
}

void
gpc_shared_pages_remove(uint64_t address, size_t size)
{
	struct pages *pages, *next;

	(void)pthread_mutex_lock(&shared_pages.lock);
	LL_FOREACH_SAFE(shared_pages.first, pages, next)
	{
		if (pages->address + pages->size <= address || address + size <= pages->address)
			continue;
		LL_DELETE(shared_pages.first, pages);
		free(pages);
	}
	(void)pthread_mutex_unlock(&shared_pages.lock);
}

bool
gpc_shared_pages_exist(const struct gpc_session *session)
{
	struct pages *pages;

	(void)pthread_mutex_lock(&shared_pages.lock);
	LL_SEARCH_SCALAR(shared_pages.first, pages, session, session);
	(void)pthread_mutex_unlock(&shared_pages.lock);
	return pages != NULL;
}

static void *
private_map(size_t size)
{
	void *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return own == MAP_FAILED ? NULL : own;
}

/* Merges into `at` the bytes of a word that the program wrote into the shared page after the copy,
 * unless it has written them again since. */
static void
word_merge_late_store(uint64_t *at, uint64_t copied, uint64_t late)
{
	uint64_t now = __atomic_load_n(at, __ATOMIC_RELAXED), then;

	do {
		then = now;
		for (unsigned int i = 0; i < 64; i += 8) {
			uint64_t byte = UINT64_C(0xff) << i;

			if ((late ^ copied) & byte && !((now ^ copied) & byte))
				then = (then & ~byte) | (late & byte);
		}
	} while (!__atomic_compare_exchange_n(at, &now, then, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
}

/* at: the program's address of the pages; shared: a second mapping of the same pages; own: where
 * the copy is made before it is moved to `at`; copied: scratch buffer of `size` bytes. */
static void
pages_copy_part(uint8_t *at, const uint8_t *shared, uint8_t *own, uint8_t *copied, size_t size)
{
	uint64_t *words = (uint64_t *)(void *)at;
	const uint64_t *late = (const uint64_t *)(const void *)shared;
	const uint64_t *before = (const uint64_t *)(const void *)copied;

	/* Touches the pages first, so that the time-critical part does not fault. */
	memset(own, 0, size);
	memcpy(copied, shared, size);
	memcpy(own, copied, size);
	if (mremap(own, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
		return;
	/* From here on no store reaches the shared pages. */
	for (size_t i = 0; i < size / sizeof(uint64_t); i++) {
		uint64_t word = __atomic_load_n(&late[i], __ATOMIC_ACQUIRE);

		if (word != before[i])
			word_merge_late_store(&words[i], before[i], word);
	}
}

static void
pages_make_private(const struct pages *pages, uint8_t *copied)
{
	uint8_t *at = address_to_pointer(pages->address);
	uint8_t *shared = mremap(at, 0, pages->size, MREMAP_MAYMOVE);
	/* One mapping, so that the parts merge into one again after they are moved. */
	uint8_t *own = private_map(pages->size);

	for (size_t done = 0; shared != MAP_FAILED && own && done < pages->size; done += STEP)
		pages_copy_part(at + done, shared + done, own + done, copied,
				pages->size - done < STEP ? pages->size - done : STEP);
	if (shared != MAP_FAILED)
		(void)munmap(shared, pages->size);
}

void
gpc_shared_pages_make_private(const struct gpc_session *session)
{
	struct pages *pages, *next;
	uint8_t *copied;

	(void)pthread_mutex_lock(&shared_pages.lock);
	copied = shared_pages.first ? private_map(STEP) : NULL;
	LL_FOREACH_SAFE(shared_pages.first, pages, next)
	{
		if (pages->session != session)
			continue;
		if (copied)
			pages_make_private(pages, copied);
		LL_DELETE(shared_pages.first, pages);
		free(pages);
	}
	if (copied)
		(void)munmap(copied, STEP);
	(void)pthread_mutex_unlock(&shared_pages.lock);
}
