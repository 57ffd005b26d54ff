/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/keeper.h"

#include "client/context/context.h"
#include "client/memory/memory.h"
#include "client/wire/session.h"

#include <stddef.h>

/* What one keeper has at most. */
#define COUNT_MAX 32
#define BYTES_MAX ((uint64_t)256 << 20)

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpc_keeper *_Atomic keepers;

static void
enlist(struct gpc_keeper *keeper)
{
	(void)pthread_mutex_lock(&list_lock);
	if (!keeper->listed) {
		keeper->next = keepers;
		keepers = keeper;
		keeper->listed = true;
	}
	(void)pthread_mutex_unlock(&list_lock);
}

/* Takes out the first one for which is_one() says so. */
static struct gpc_kept_object *
take_out(struct gpc_keeper *keeper,
	 bool (*is_one)(const struct gpc_kept_object *object, const void *arg), const void *arg)
{
	struct gpc_kept_object **link = &keeper->first, *object;

	(void)pthread_mutex_lock(&keeper->lock);
	while (*link && !is_one(*link, arg))
		link = &(*link)->next;
	object = *link;
	if (object) {
		*link = object->next;
		keeper->count--;
		keeper->bytes -= object->bytes;
	}
	(void)pthread_mutex_unlock(&keeper->lock);
	if (object)
		gpc_memory_count_kept(object->context->device, -object->bytes);
	return object;
}

void
gpc_keeper_drop(struct gpc_keeper *keeper,
		bool (*is_one)(const struct gpc_kept_object *object, const void *arg),
		const void *arg)
{
	struct gpc_kept_object *object;

	while ((object = take_out(keeper, is_one, arg)))
		keeper->drop(object);
}

/* Asked under the keeper's lock, which guards the counts. */
static bool
is_too_much(const struct gpc_kept_object *object, const void *arg)
{
	const struct gpc_keeper *keeper = arg;

	return keeper->count > COUNT_MAX || keeper->bytes > BYTES_MAX;
}

static bool
is_of_context(const struct gpc_kept_object *object, const void *context)
{
	return object->context == context;
}

static bool
is_of_session(const struct gpc_kept_object *object, const void *session)
{
	return object->context->scope.session == session;
}

bool
gpc_keeper_put(struct gpc_keeper *keeper, struct gpc_kept_object *object,
	       struct gpc_context *context, uint64_t bytes)
{
	struct gpc_session *session = context->scope.session;
	struct gpc_kept_object **link = &keeper->first;

	if (bytes > BYTES_MAX || gpc_session_status(session) != CUDA_SUCCESS)
		return false;
	object->context = context;
	object->bytes = bytes;
	object->tag = gpc_session_work_posted(session);
	object->next = NULL;
	gpc_memory_count_kept(context->device, bytes);
	enlist(keeper);
	(void)pthread_mutex_lock(&keeper->lock);
	while (*link)
		link = &(*link)->next;
	*link = object;
	keeper->count++;
	keeper->bytes += bytes;
	(void)pthread_mutex_unlock(&keeper->lock);
	gpc_keeper_drop(keeper, is_too_much, keeper);
	gpc_memory_keeps(context);
	if (gpc_session_work_posted(session) > gpc_session_work_done(session))
		gpc_memory_poll(context);
	return true;
}

struct wish {
	const struct gpc_keeper *keeper;
	const struct gpc_context *context;
	const void *wanted;
	uint64_t done;
};

static bool
is_wanted(const struct gpc_kept_object *object, const void *arg)
{
	const struct wish *wish = arg;

	return object->context == wish->context && object->tag <= wish->done &&
	       wish->keeper->same(object, wish->wanted);
}

struct gpc_kept_object *
gpc_keeper_take(struct gpc_keeper *keeper, struct gpc_context *context, const void *wanted)
{
	struct wish wish = { keeper, context, wanted, 0 };

	if (!keeper->listed)
		return NULL;
	gpc_memory_take_answer(context);
	wish.done = gpc_session_work_done(context->scope.session);
	return take_out(keeper, is_wanted, &wish);
}

void
gpc_keeper_forget_context(struct gpc_keeper *keeper, const struct gpc_context *context)
{
	gpc_keeper_drop(keeper, is_of_context, context);
}

void
gpc_keepers_give_back(const struct gpc_session *session)
{
	for (struct gpc_keeper *keeper = keepers; keeper; keeper = keeper->next)
		gpc_keeper_drop(keeper, is_of_session, session);
}

uint64_t
gpc_keepers_bytes(const struct gpc_device *device)
{
	uint64_t bytes = 0;

	for (struct gpc_keeper *keeper = keepers; keeper; keeper = keeper->next) {
		(void)pthread_mutex_lock(&keeper->lock);
		for (const struct gpc_kept_object *o = keeper->first; o; o = o->next)
			bytes += o->context->device == device ? o->bytes : 0;
		(void)pthread_mutex_unlock(&keeper->lock);
	}
	return bytes;
}
