/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/handle.h"

#include "base/lock.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* id: low 20 bits index, upper 12 generation. Token: a pointer that no process can have mapped, so
 * that a program that dereferences it faults at once, with zeros in the low bits like the address
 * of any object. */
#define INDEX_BITS 20
#define INDEX_MAX (1u << INDEX_BITS)
#define GENERATIONS (1u << (32 - INDEX_BITS))
#define TOKEN_TAG UINT64_C(0x4750)
#define TOKEN_TAG_SHIFT 48
#define TOKEN_KIND_SHIFT 40
#define TOKEN_ID_SHIFT 4

#define PAGE_SLOTS 1024u
#define PAGES (INDEX_MAX / PAGE_SLOTS)

struct slot {
	struct gpc_handle *handle; /* NULL while the slot is free */
	void *memory; /* memory for the objects of this slot; NULL: they have memory of their own */
	uint32_t id;  /* of the handle, or of the last one in this slot */
	uint32_t next_free;
	bool claimed; /* gpc_handle_claim() of the present object */
};

/* Pages are allocated on demand and never freed, so that a lookup needs no lock. */
struct table {
	pthread_mutex_t lock;
	struct slot *pages[PAGES];
	uint32_t made; /* slots 1 to made exist; index 0 is never used */
	/* Freed slots are reused in FIFO order, so that a stale handle stays detectable as long as
	 * possible. */
	uint32_t free_first, free_last;
};

static struct table tables[GPC_KIND_COUNT] = {
	[0 ... GPC_KIND_COUNT - 1] = { .lock = PTHREAD_MUTEX_INITIALIZER },
};

/* Returns NULL if no such slot was ever made. */
static struct slot *
slot_get(struct table *table, uint32_t index)
{
	struct slot *page = __atomic_load_n(&table->pages[index / PAGE_SLOTS], __ATOMIC_ACQUIRE);

	return page ? &page[index % PAGE_SLOTS] : NULL;
}

static uint32_t
slot_create(struct table *table) GP_LOCKED(table->lock)
{
	uint32_t index = table->made + 1;

	if (index >= INDEX_MAX)
		return 0;
	if (!slot_get(table, index)) {
		struct slot *page = calloc(PAGE_SLOTS, sizeof(*page));

		if (!page)
			return 0;
		__atomic_store_n(&table->pages[index / PAGE_SLOTS], page, __ATOMIC_RELEASE);
	}
	table->made = index;
	return index;
}

static uint32_t
slot_acquire(struct table *table) GP_LOCKED(table->lock)
{
	uint32_t index = table->free_first;

	if (!index)
		return slot_create(table);
	table->free_first = slot_get(table, index)->next_free;
	if (!table->free_first)
		table->free_last = 0;
	return index;
}

static uint32_t
id_next_generation(uint32_t last, uint32_t index)
{
	uint32_t generation = ((last >> INDEX_BITS) + 1) % GENERATIONS;

	return generation << INDEX_BITS | index;
}

static void *
id_to_token(enum gpc_kind kind, uint32_t id)
{
	return (void *)(uintptr_t)(TOKEN_TAG << TOKEN_TAG_SHIFT |
				   (uint64_t)kind << TOKEN_KIND_SHIFT |
				   (uint64_t)id << TOKEN_ID_SHIFT);
}

static void
slot_publish(struct table *table, enum gpc_kind kind, uint32_t index, struct gpc_handle *handle)
	GP_LOCKED(table->lock)
{
	struct slot *slot = slot_get(table, index);
	uint32_t id = id_next_generation(slot->id, index);

	*handle = (struct gpc_handle){ kind, id, id_to_token(kind, id) };
	slot->claimed = false;
	__atomic_store_n(&slot->id, id, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
}

static void
slot_release(struct table *table, uint32_t index) GP_LOCKED(table->lock)
{
	struct slot *slot = slot_get(table, index);

	slot->next_free = 0;
	if (table->free_last)
		slot_get(table, table->free_last)->next_free = index;
	else
		table->free_first = index;
	table->free_last = index;
}

/* Word by word and atomically, because a thread may still read the previous object
 * (client/stream/stream_managed.c). */
static void
object_clear(uint64_t *words, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*words); i++)
		__atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
}

void *
gpc_handle_new(enum gpc_kind kind, size_t size)
{
	struct table *table = &tables[kind];
	void *object = NULL;
	uint32_t index;

	(void)pthread_mutex_lock(&table->lock);
	index = slot_acquire(table);
	if (index) {
		struct slot *slot = slot_get(table, index);

		if (slot->memory)
			object_clear(slot->memory, size);
		else
			slot->memory = calloc(1, size);
		object = slot->memory;
		if (object)
			slot_publish(table, kind, index, object);
		else
			slot_release(table, index);
	}
	(void)pthread_mutex_unlock(&table->lock);
	return object;
}

int
gpc_handle_add(enum gpc_kind kind, struct gpc_handle *handle)
{
	struct table *table = &tables[kind];
	uint32_t index;

	(void)pthread_mutex_lock(&table->lock);
	index = slot_acquire(table);
	if (index)
		slot_publish(table, kind, index, handle);
	(void)pthread_mutex_unlock(&table->lock);
	return index ? 0 : -ENOMEM;
}

void
gpc_handle_publish(struct gpc_handle *handle)
{
	struct slot *slot = slot_get(&tables[handle->kind], handle->id % INDEX_MAX);

	__atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
}

static struct gpc_handle *
handle_find(struct table *table, uint32_t id)
{
	struct slot *slot = slot_get(table, id % INDEX_MAX);
	struct gpc_handle *handle;

	if (!slot)
		return NULL;
	handle = __atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE);
	return handle && __atomic_load_n(&slot->id, __ATOMIC_RELAXED) == id ? handle : NULL;
}

static uint32_t
token_to_id(const void *token)
{
	return (uint32_t)((uintptr_t)token >> TOKEN_ID_SHIFT);
}

void *
gpc_handle_from_token(enum gpc_kind kind, const void *token)
{
	uint32_t id = token_to_id(token);

	return token == id_to_token(kind, id) ? handle_find(&tables[kind], id) : NULL;
}

unsigned int
gpc_handle_kind(const void *token)
{
	return (unsigned int)((uintptr_t)token >> TOKEN_KIND_SHIFT & 0xff);
}

void *
gpc_handle_from_id(enum gpc_kind kind, uint32_t id)
{
	return handle_find(&tables[kind], id);
}

bool
gpc_handle_claim(enum gpc_kind kind, const void *token)
{
	struct table *table = &tables[kind];
	bool claimed = false;

	(void)pthread_mutex_lock(&table->lock);
	if (gpc_handle_from_token(kind, token)) {
		struct slot *slot = slot_get(table, token_to_id(token) % INDEX_MAX);

		claimed = !slot->claimed;
		slot->claimed = true;
	}
	(void)pthread_mutex_unlock(&table->lock);
	return claimed;
}

void
gpc_handle_unclaim(struct gpc_handle *handle)
{
	struct table *table = &tables[handle->kind];

	(void)pthread_mutex_lock(&table->lock);
	slot_get(table, handle->id % INDEX_MAX)->claimed = false;
	(void)pthread_mutex_unlock(&table->lock);
}

void
gpc_handle_remove(struct gpc_handle *handle)
{
	struct table *table = &tables[handle->kind];
	uint32_t index = handle->id % INDEX_MAX;
	struct slot *slot = slot_get(table, index);

	(void)pthread_mutex_lock(&table->lock);
	/* A second removal must not append the slot to the free list again. */
	if (slot->handle == handle && slot->id == handle->id) {
		__atomic_store_n(&slot->handle, NULL, __ATOMIC_RELEASE);
		slot_release(table, index);
	}
	(void)pthread_mutex_unlock(&table->lock);
}

/* Returns an array that the caller frees, or NULL if there are no objects. */
static uint32_t *
table_list_ids(struct table *table, uint32_t *count_p)
{
	uint32_t *ids, count = 0;

	(void)pthread_mutex_lock(&table->lock);
	ids = table->made ? malloc(table->made * sizeof(*ids)) : NULL;
	for (uint32_t index = 1; ids && index <= table->made; index++) {
		const struct slot *slot = slot_get(table, index);

		if (slot->handle)
			ids[count++] = slot->id;
	}
	(void)pthread_mutex_unlock(&table->lock);
	*count_p = count;
	return ids;
}

void
gpc_handle_each(enum gpc_kind kind, void (*visit)(void *object, void *arg), void *arg)
{
	uint32_t count, *ids = table_list_ids(&tables[kind], &count);

	for (uint32_t i = 0; i < count; i++) {
		struct gpc_handle *handle = handle_find(&tables[kind], ids[i]);

		if (handle)
			visit(handle, arg);
	}
	free(ids);
}
