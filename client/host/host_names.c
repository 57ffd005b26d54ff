/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_names.h"

#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/host_space.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void
gpc_host_names_begin(struct gpc_host_names *names, const struct gpc_session *session)
{
	names->session = session;
	names->failed = names->half_filled = false;
	names->size = 0;
	if (atomic_load(&gpc_host_memory_cold) > 0)
		gpc_host_space_bounds(&names->base, &names->size);
}

void
gpc_host_names_fini(struct gpc_host_names *names)
{
	free(names->list);
	*names = (struct gpc_host_names){ 0 };
}

static bool
is_cold(const struct gpc_host_names *names, uint64_t address)
{
	struct gpc_host_block block;
	struct gpc_range range;

	return gpc_host_space_contains(address) &&
	       gpc_host_block_find(address, &range, &block, NULL) && block.state == GPC_HOST_COLD &&
	       block.context->scope.session == names->session &&
	       !(names->half_filled && block.copied);
}

void
gpc_host_names_add(struct gpc_host_names *names, uint64_t value)
{
	if (names->failed || !is_cold(names, value))
		return;
	if (names->count == names->room) {
		size_t room = names->room ? names->room * 2 : 64;
		uint64_t *list = realloc(names->list, room * sizeof(*list));

		if (!list) {
			names->failed = true;
			return;
		}
		names->list = list;
		names->room = room;
	}
	names->list[names->count++] = value;
}

void
gpc_host_names_look(struct gpc_host_names *names, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	bool aligned = (uintptr_t)bytes % 8 == 0;

	if (!names->size)
		return;
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t value;

		/* The program may write there meanwhile. */
		if (aligned)
			value = __atomic_load_n((const uint64_t *)(const void *)(at + i),
						__ATOMIC_RELAXED);
		else
			memcpy(&value, at + i, sizeof(value));
		(void)gpc_host_names_note(names, value);
	}
}

bool
gpc_host_names_take(struct gpc_host_names *names, uint64_t *address_p)
{
	if (names->count == 0)
		return false;
	*address_p = names->list[--names->count];
	return true;
}
