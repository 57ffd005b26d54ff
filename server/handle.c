/* SPDX-License-Identifier: Apache-2.0 */
#include "server/handle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX(id) ((id) & (GPD_HANDLE_INDEX_MAX - 1))

static int
grow(struct gpd_handle_slots *slots, uint32_t index)
{
	uint32_t count = slots->count ? slots->count : 64;
	struct gpd_handle **grown;

	while (count <= index)
		count *= 2;
	grown = realloc(slots->slots, count * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + slots->count, 0, (count - slots->count) * sizeof(*grown));
	slots->slots = grown;
	slots->count = count;
	return 0;
}

int
gpd_handle_add(struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id,
	       struct gpd_handle *handle)
{
	struct gpd_handle_slots *slots = &table->kinds[kind];
	uint32_t index = INDEX(id);

	if (id == 0)
		return -EINVAL;
	if (index >= slots->count) {
		int r = grow(slots, index);

		if (r)
			return r;
	}
	if (slots->slots[index])
		return -EEXIST;
	handle->kind = kind;
	handle->id = id;
	slots->slots[index] = handle;
	return 0;
}

struct gpd_handle *
gpd_handle_get(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id)
{
	const struct gpd_handle_slots *slots = &table->kinds[kind];
	uint32_t index = INDEX(id);
	struct gpd_handle *handle;

	if (id == 0 || index >= slots->count)
		return NULL;
	handle = slots->slots[index];
	return handle && handle->id == id ? handle : NULL;
}

void
gpd_handle_remove(struct gpd_handle_table *table, struct gpd_handle *handle)
{
	struct gpd_handle_slots *slots = &table->kinds[handle->kind];
	uint32_t index = INDEX(handle->id);

	if (index < slots->count && slots->slots[index] == handle)
		slots->slots[index] = NULL;
}

void
gpd_handle_each(struct gpd_handle_table *table, enum gpd_kind kind,
		void (*visit)(struct gpd_handle *handle, void *arg), void *arg)
{
	struct gpd_handle_slots *slots = &table->kinds[kind];

	/* The visitor may remove the handle that it is given, and add none. */
	for (uint32_t i = 0; i < slots->count; i++) {
		if (slots->slots[i])
			visit(slots->slots[i], arg);
	}
}

void
gpd_handle_fini(struct gpd_handle_table *table)
{
	for (int kind = 0; kind < GPD_KIND_COUNT; kind++)
		free(table->kinds[kind].slots);
	memset(table, 0, sizeof(*table));
}
