/* SPDX-License-Identifier: Apache-2.0 */
#include "client/managed/managed_variable.h"

#include "base/lock.h"
#include "client/base/list.h"
#include "client/base/log.h"
#include "client/managed/managed_copy.h"
#include "client/memory/address.h"
#include "client/pages/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One entry per context and image that requested the variable. */
struct variable {
	struct gpc_context *context;
	uint32_t image;
	uint64_t address, size;
};

/* Whole pages of variables that share pages. Only the variables' own bytes are transferred. */
struct span {
	uint64_t base, size;
};

/* variables is sorted by address. Both lists change only between gpc_pages_begin() and
 * gpc_pages_end(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct variable *variables GP_GUARDED_BY(lock);
static size_t count GP_GUARDED_BY(lock), capacity GP_GUARDED_BY(lock);
static struct span *spans;
static size_t span_count, span_room;

/* Transfer */

/* Fetches into host memory, or pushes from it. */
static bool
variables_transfer(uint64_t address, uint64_t size, uint8_t *host, bool push)
{
	uint64_t done = address;
	bool transferred = true;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count && transferred; i++) {
		const struct variable *one = &variables[i];
		uint64_t from = one->address > done ? one->address : done;
		uint64_t end = one->address + one->size;
		uint8_t *at = host + (from - address);

		if (end > address + size)
			end = address + size;
		if (from >= end)
			continue;
		transferred = push ? gpc_managed_push(one->context, from, end - from, at)
				   : gpc_managed_fetch(one->context, from, end - from, at);
		done = end;
	}
	(void)pthread_mutex_unlock(&lock);
	return transferred;
}

static bool
span_fetch(void *owner, uint64_t address, uint64_t size, void *to)
{
	return variables_transfer(address, size, to, false);
}

static bool
span_push(void *owner, uint64_t address, uint64_t size, const void *from)
{
	return variables_transfer(address, size, (uint8_t *)(uintptr_t)from, true);
}

static const struct gpc_pages_ops span_calls = {
	.await = gpc_managed_await,
	.fetch = span_fetch,
	.push = span_push,
};

/* Spans */

static int
span_add(uint64_t base, uint64_t end, struct gpc_context *context)
{
	struct span *list = gpc_list_grow(spans, span_count, &span_room, sizeof(*list));
	int r;

	if (!list)
		return -ENOMEM;
	spans = list;
	r = gpc_pages_create(base, end - base, true, &span_calls, context, context->scope.session);
	if (r == 0)
		spans[span_count++] = (struct span){ base, end - base };
	return r;
}

/* Flushes the overlapping spans to the device and removes them. Extends [*first_p, *end_p) to cover
 * them. */
static bool
spans_drop(uint64_t *first_p, uint64_t *end_p)
{
	bool pushed = true;

	for (size_t i = 0; i < span_count;) {
		const struct span span = spans[i];

		if (span.base >= *end_p || span.base + span.size <= *first_p) {
			i++;
			continue;
		}
		pushed &= gpc_pages_flush_range(span.base, span.size, true);
		gpc_pages_destroy(span.base);
		spans[i] = spans[--span_count];
		if (span.base < *first_p)
			*first_p = span.base;
		if (span.base + span.size > *end_p)
			*end_p = span.base + span.size;
		i = 0;
	}
	return pushed;
}

/* Finds the next variables in [*at, end) that share pages. Returns their context, or NULL if there
 * are no more; *at and *group_end become the bounds of their pages. */
static struct gpc_context *
group_find_next(uint64_t *at, uint64_t end, uint64_t *group_end)
{
	struct gpc_context *context = NULL;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++) {
		const struct variable *one = &variables[i];

		if (one->address < *at || one->address >= end)
			continue;
		if (context && gpc_page_below(one->address) >= *group_end)
			break;
		if (!context) {
			context = one->context;
			*at = gpc_page_below(one->address);
			*group_end = 0;
		}
		if (gpc_page_above(one->address + one->size) > *group_end)
			*group_end = gpc_page_above(one->address + one->size);
	}
	(void)pthread_mutex_unlock(&lock);
	return context;
}

/* Replaces the spans of these pages by those of the current variables. Called between
 * gpc_pages_begin() and gpc_pages_end(). */
static int
spans_rebuild(uint64_t first, uint64_t end)
{
	int r = spans_drop(&first, &end) ? 0 : -EIO;
	struct gpc_context *context;
	uint64_t group_end;

	for (uint64_t at = first; (context = group_find_next(&at, end, &group_end));
	     at = group_end) {
		int one = span_add(at, group_end, context);

		if (r == 0)
			r = one;
	}
	return r;
}

/* Variables */

static int
variables_make_room(size_t place) GP_LOCKED(lock)
{
	struct variable *list = gpc_list_grow(variables, count, &capacity, sizeof(*list));

	if (!list)
		return -ENOMEM;
	variables = list;
	memmove(variables + place + 1, variables + place, (count - place) * sizeof(*variables));
	count++;
	return 0;
}

/* Returns 1 if the variable already exists. */
static int
variable_insert(const struct variable *wanted)
{
	size_t place = 0;
	int r = 0;

	(void)pthread_mutex_lock(&lock);
	while (place < count && variables[place].address < wanted->address)
		place++;
	for (size_t i = place; i < count && variables[i].address == wanted->address; i++) {
		if (variables[i].context == wanted->context && variables[i].image == wanted->image)
			r = 1;
	}
	if (r == 0)
		r = variables_make_room(place);
	if (r == 0)
		variables[place] = *wanted;
	(void)pthread_mutex_unlock(&lock);
	return r;
}

/* Removes a variable of this context or, if context is NULL, of this image. Returns false if there
 * is none. */
static bool
variable_remove(const struct gpc_context *context, uint32_t image, struct variable *removed)
{
	bool found = false;

	(void)pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count && !found; i++) {
		if (context ? variables[i].context != context : variables[i].image != image)
			continue;
		found = true;
		*removed = variables[i];
		count--;
		memmove(variables + i, variables + i + 1, (count - i) * sizeof(*variables));
	}
	(void)pthread_mutex_unlock(&lock);
	return found;
}

static CUresult
variable_add(struct gpc_context *context, uint64_t address, uint64_t size, uint32_t image)
{
	const struct variable wanted = { context, image, address, size };
	int r;

	gpc_pages_begin();
	r = variable_insert(&wanted);
	if (r == 0)
		r = spans_rebuild(gpc_page_below(address), gpc_page_above(address + size));
	gpc_pages_end();
	return r >= 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void
variables_drop(const struct gpc_context *context, uint32_t image)
{
	struct variable dropped;

	if (!gpc_pages_any())
		return;
	gpc_pages_begin();
	while (variable_remove(context, image, &dropped)) {
		if (spans_rebuild(gpc_page_below(dropped.address),
				  gpc_page_above(dropped.address + dropped.size)))
			gpc_log(GPC_LOG_ERROR, "a managed variable cannot be used any more");
	}
	gpc_pages_end();
}

static void
drop_image(uint32_t image)
{
	variables_drop(NULL, image);
}

void
gpc_managed_variable_drop_context(struct gpc_context *context)
{
	variables_drop(context, 0);
}

const struct gpc_image_variable_calls gpc_managed_variable_calls = {
	.add = variable_add,
	.drop_image = drop_image,
};
