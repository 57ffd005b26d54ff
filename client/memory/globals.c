/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/globals.h"

#include "base/lock.h"
#include "client/base/ranges.h"
#include "client/connect/window.h"
#include "client/context/context.h"
#include "client/memory/address.h"
#include "client/memory/memory.h"
#include "client/session/session.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* A context and image through which the variable was queried. A library's variable is the same in
 * all contexts of its device. */
struct owner {
	struct owner *next;
	struct gpc_context *context;
	uint32_t image;
};

/* A variable with at least one owner is device memory. Without the registration its address would
 * be treated as the program's own memory, and read and written there. */
struct global {
	struct owner *owners;
	uint64_t id;
	bool managed;
};

/* One list per daemon: their drivers choose addresses independently, so these may overlap. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gpc_ranges globals[GPC_SESSIONS_MAX] GP_GUARDED_BY(lock);

static struct gpc_ranges *
context_get_ranges(const struct gpc_context *context)
{
	return &globals[gpc_session_number(context->scope.session)];
}

static const struct gpc_range *
global_find_range(uint64_t address)
{
	const struct gpc_context *current = gpc_context_get_current();
	const struct gpc_range *range = NULL;

	/* If several daemons use the address, the current context decides. */
	if (current)
		range = gpc_ranges_find(context_get_ranges(current), address, 1);
	for (int i = 0; !range && i < gpc_session_count(); i++)
		range = gpc_ranges_find(&globals[i], address, 1);
	return range;
}

/* Returns the current context if it is an owner, otherwise the first owner. */
static struct gpc_context *
global_get_context(const struct global *global)
{
	const struct gpc_context *current = gpc_context_get_current();

	for (const struct owner *owner = global->owners; owner; owner = owner->next) {
		if (owner->context == current)
			return owner->context;
	}
	return global->owners->context;
}

bool
gpc_globals_find(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;
	const struct global *global;

	(void)pthread_rwlock_rdlock(&lock);
	range = global_find_range(address);
	if (range) {
		global = range->item;
		*found = (struct gpc_address){
			.kind = GPC_ADDRESS_DEVICE,
			.base = range->base,
			.size = range->size,
			.context = global_get_context(global),
			.buffer_id = global->id,
			.mapping_base = range->base,
			.mapping_size = range->size,
			.managed = global->managed,
		};
	}
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

/* Returns the first page from `at` on, before end, without a registered variable; *until is set to
 * the next page with one, or to end. */
static uint64_t
pages_next_gap(uint64_t at, uint64_t end, uint64_t *until)
{
	bool covered;

	do {
		covered = false;
		*until = end;
		for (int i = 0; i < GPC_SESSIONS_MAX && at < end; i++) {
			const struct gpc_range *range = gpc_ranges_find(&globals[i], at, end - at);

			if (!range)
				continue;
			if (gpc_page_below(range->base) <= at) {
				at = gpc_page_above(range->base + range->size);
				covered = true;
				break;
			}
			if (gpc_page_below(range->base) < *until)
				*until = gpc_page_below(range->base);
		}
	} while (covered && at < end);
	return at;
}

/* Releases the pages of an unregistered variable, except those that other variables use. */
static void
pages_release(uint64_t first, uint64_t end)
{
	uint64_t until;

	for (uint64_t at = first; (at = pages_next_gap(at, end, &until)) < end; at = until)
		gpc_window_release(at, until - at);
}

/*
 * Reserves those of the variable's pages that are not yet reserved: memory that the program maps
 * later must not be placed there, as copies from and to it would access the daemon's memory.
 * Variables share pages, and those of several daemons may share addresses.
 */
static int
pages_reserve(uint64_t first, uint64_t end)
{
	uint64_t until;

	for (uint64_t at = first; (at = pages_next_gap(at, end, &until)) < end; at = until) {
		int r = gpc_window_reserve_pages(at, until - at);

		if (r) {
			pages_release(first, at);
			return r;
		}
	}
	return 0;
}

/* Adds a new range, or returns the existing one if it is the same. */
static int
global_add_range(struct gpc_ranges *ranges, uint64_t address, size_t size, struct global **global_p)
{
	const struct gpc_range *there = gpc_ranges_find(ranges, address, size);
	struct global *global;
	int r;

	if (there) {
		*global_p = there->item;
		return there->base == address && there->size == size ? 0 : GP_E_INVALID;
	}
	global = calloc(1, sizeof(*global));
	if (!global)
		return -ENOMEM;
	global->id = gpc_memory_next_id();
	r = pages_reserve(gpc_page_below(address), gpc_page_above(address + size));
	if (r == 0) {
		r = gpc_ranges_add(ranges, address, size, global);
		if (r)
			pages_release(gpc_page_below(address), gpc_page_above(address + size));
	}
	if (r) {
		free(global);
		return r;
	}
	*global_p = global;
	return 0;
}

static bool
global_has_owner(const struct global *global, const struct owner *wanted)
{
	const struct owner *owner = global->owners;

	while (owner && (owner->context != wanted->context || owner->image != wanted->image))
		owner = owner->next;
	return owner != NULL;
}

int
gpc_globals_add(struct gpc_context *context, uint64_t address, size_t size, bool managed,
		uint32_t image)
{
	struct owner *owner;
	struct global *global;
	int r;

	/* Nothing can be copied from or to an empty variable. */
	if (size == 0)
		return 0;
	/* The first page is never usable, and the last one would overflow. */
	if (gpc_page_below(address) == 0 || gpc_page_above(address + size) < address)
		return GP_E_INVALID;
	owner = malloc(sizeof(*owner));
	if (!owner)
		return -ENOMEM;
	*owner = (struct owner){ .context = context, .image = image };
	(void)pthread_rwlock_wrlock(&lock);
	r = global_add_range(context_get_ranges(context), address, size, &global);
	/* Queried before, in another way or by another thread. */
	if (r == 0)
		global->managed |= managed;
	if (r == 0 && !global_has_owner(global, owner)) {
		owner->next = global->owners;
		global->owners = owner;
		owner = NULL;
	}
	(void)pthread_rwlock_unlock(&lock);
	free(owner);
	return r;
}

static void
ranges_drop_owner(struct gpc_ranges *ranges, const struct gpc_context *context, uint32_t image)
{
	for (size_t i = ranges->count; i-- > 0;) {
		struct global *global = ranges->list[i].item;
		struct owner **at = &global->owners;

		while (*at) {
			struct owner *owner = *at;

			if (context ? owner->context != context : owner->image != image) {
				at = &owner->next;
				continue;
			}
			*at = owner->next;
			free(owner);
		}
		if (!global->owners) {
			const struct gpc_range gone = ranges->list[i];

			gpc_ranges_remove(ranges, &ranges->list[i]);
			pages_release(gpc_page_below(gone.base),
				      gpc_page_above(gone.base + gone.size));
			free(global);
		}
	}
}

static void
globals_drop_owner(const struct gpc_context *context, uint32_t image)
{
	(void)pthread_rwlock_wrlock(&lock);
	for (int i = 0; i < GPC_SESSIONS_MAX; i++)
		ranges_drop_owner(&globals[i], context, image);
	(void)pthread_rwlock_unlock(&lock);
}

void
gpc_globals_drop_image(uint32_t image)
{
	globals_drop_owner(NULL, image);
}

void
gpc_globals_drop_context(struct gpc_context *context)
{
	globals_drop_owner(context, 0);
}
