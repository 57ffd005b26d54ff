/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS (GPD_HANDLE_INDEX_MAX / GPD_HANDLE_CHUNK)

static const uint16_t costs[GPD_KIND_COUNT] = { GPD_KIND_COSTS };

/* Returns the table slot of this ID; NULL: its chunk does not exist yet. */
static struct gpd_handle **
handle_get_slot(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id)
{
	uint32_t index = id & (GPD_HANDLE_INDEX_MAX - 1);
	struct gpd_handle **chunk = table->chunks[kind][index / GPD_HANDLE_CHUNK];

	return chunk ? &chunk[index % GPD_HANDLE_CHUNK] : NULL;
}

static int
add_chunk(struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id)
{
	uint32_t index = id & (GPD_HANDLE_INDEX_MAX - 1);
	struct gpd_handle **chunk;

	if (!gpd_handle_memory_add(&table->memory, GPD_HANDLE_CHUNK * sizeof(*chunk)))
		return -ENOMEM;
	chunk = calloc(GPD_HANDLE_CHUNK, sizeof(*chunk));
	if (!chunk) {
		gpd_handle_memory_remove(&table->memory, GPD_HANDLE_CHUNK * sizeof(*chunk));
		return -ENOMEM;
	}
	table->chunks[kind][index / GPD_HANDLE_CHUNK] = chunk;
	return 0;
}

int
gpd_handle_add(struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id,
	       struct gpd_handle *handle)
{
	struct gpd_handle **place;

	if (id == 0)
		return -EINVAL;
	place = handle_get_slot(table, kind, id);
	if (!place) {
		int r = add_chunk(table, kind, id);

		if (r)
			return r;
		place = handle_get_slot(table, kind, id);
	}
	if (*place)
		return -EEXIST;
	if (!gpd_handle_memory_add(&table->memory, costs[kind]))
		return -ENOMEM;
	handle->kind = kind;
	handle->id = id;
	*place = handle;
	return 0;
}

void *
gpd_handle_get(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id)
{
	struct gpd_handle **place = id ? handle_get_slot(table, kind, id) : NULL;

	return place && *place && (*place)->id == id ? *place : NULL;
}

void
gpd_handle_remove(struct gpd_handle_table *table, struct gpd_handle *handle)
{
	struct gpd_handle **place = handle_get_slot(table, handle->kind, handle->id);

	if (!place || *place != handle)
		return;
	*place = NULL;
	gpd_handle_memory_remove(&table->memory, costs[handle->kind]);
}

void *
gpd_handle_next(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t *at)
{
	for (; *at < GPD_HANDLE_INDEX_MAX; ++*at) {
		struct gpd_handle **chunk = table->chunks[kind][*at / GPD_HANDLE_CHUNK];

		if (!chunk)
			*at += GPD_HANDLE_CHUNK - 1;
		else if (chunk[*at % GPD_HANDLE_CHUNK])
			return chunk[(*at)++ % GPD_HANDLE_CHUNK];
	}
	return NULL;
}

void
gpd_handle_fini(struct gpd_handle_table *table)
{
	for (int kind = 0; kind < GPD_KIND_COUNT; kind++) {
		for (uint32_t c = 0; c < CHUNKS; c++)
			free(table->chunks[kind][c]);
	}
	gpd_handle_memory_fini(&table->memory);
	memset(table, 0, sizeof(*table));
}
