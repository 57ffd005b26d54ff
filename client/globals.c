/* SPDX-License-Identifier: Apache-2.0 */
#include "client/globals.h"

#include "client/context.h"
#include "client/memory.h"
#include "client/ranges.h"
#include "client/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct global {
	struct gpc_context *context;
	uint32_t image;
	uint64_t id;
};

/* By daemon: their drivers place variables where they like, and not apart from one another's. */
static struct gpc_ranges globals[GPC_SESSIONS_MAX];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static struct gpc_ranges *
ranges_of(const struct gpc_context *context)
{
	return &globals[gpc_session_number(context->device->session)];
}

static const struct gpc_range *
find(uint64_t address)
{
	const struct gpc_context *current = gpc_context_get_current();
	const struct gpc_range *range = NULL;

	/* The current context says whose is meant, if several have such an address. */
	if (current)
		range = gpc_ranges_find(ranges_of(current), address, 1);
	for (int i = 0; !range && i < gpc_session_count(); i++)
		range = gpc_ranges_find(&globals[i], address, 1);
	return range;
}

bool
gpc_globals_find(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;
	const struct global *global;

	(void)pthread_rwlock_rdlock(&lock);
	range = find(address);
	if (range) {
		global = range->item;
		*found = (struct gpc_address){
			.kind = GPC_ADDRESS_DEVICE,
			.base = range->base,
			.size = range->size,
			.context = global->context,
			.buffer_id = global->id,
			.mapping_base = range->base,
			.mapping_size = range->size,
		};
	}
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

int
gpc_memory_add_global(struct gpc_context *context, uint64_t address, size_t size, uint32_t image)
{
	struct global *global = calloc(1, sizeof(*global));
	int r;

	if (!global)
		return -ENOMEM;
	global->context = context;
	global->image = image;
	global->id = gpc_memory_next_id();
	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(ranges_of(context), address, size, global);
	(void)pthread_rwlock_unlock(&lock);
	if (r)
		free(global);
	/* Asked for before, in another way or by another thread. */
	return r < 0 ? r : 0;
}

static void
forget_of(struct gpc_ranges *ranges, const struct gpc_context *context, uint32_t image)
{
	for (size_t i = ranges->count; i-- > 0;) {
		struct global *global = ranges->list[i].item;

		if (context ? global->context == context : global->image == image) {
			gpc_ranges_remove(ranges, &ranges->list[i]);
			free(global);
		}
	}
}

static void
forget(const struct gpc_context *context, uint32_t image)
{
	(void)pthread_rwlock_wrlock(&lock);
	for (int i = 0; i < GPC_SESSIONS_MAX; i++)
		forget_of(&globals[i], context, image);
	(void)pthread_rwlock_unlock(&lock);
}

void
gpc_memory_forget_image(uint32_t image)
{
	forget(NULL, image);
}

void
gpc_globals_forget_context(struct gpc_context *context)
{
	forget(context, 0);
}
