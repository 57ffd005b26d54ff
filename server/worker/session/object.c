/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/object.h"

#include "server/worker/device/device.h"
#include "server/worker/session/context.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

CUresult
gpd_object_add(struct gpd_session *session, enum gpd_kind kind, uint32_t id, void *driver,
	       struct gpd_object *owner)
{
	struct gpd_context *context = gpd_context_get(session, session->context);
	struct gpd_object *object = calloc(1, sizeof(*object));
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (object) {
		object->driver = driver;
		object->owner = owner;
		object->device = context ? context->device : 0;
		object->context = gpd_object_kinds[kind].goes_with_context ? context : NULL;
		result = gpd_session_name(session, kind, id, &object->handle);
	}
	if (result != CUDA_SUCCESS) {
		if (gpd_object_kinds[kind].end)
			(void)gpd_object_kinds[kind].end(driver);
		free(object);
	}
	return result;
}

struct gpd_object *
gpd_object_get(const struct gpd_session *session, enum gpd_kind kind, uint32_t id)
{
	return (struct gpd_object *)gpd_handle_get(&session->handles, kind, id);
}

struct search {
	const void *driver;
	uint32_t id;
};

static void
compare(struct gpd_handle *handle, void *arg)
{
	struct search *search = arg;

	if (((struct gpd_object *)handle)->driver == search->driver)
		search->id = handle->id;
}

uint32_t
gpd_object_id(struct gpd_session *session, enum gpd_kind kind, const void *driver)
{
	struct search search = { .driver = driver };

	gpd_handle_each(&session->handles, kind, compare, &search);
	return search.id;
}

bool
gpd_object_charge(struct gpd_session *session, struct gpd_object *object, uint64_t bytes)
{
	if (!gpd_name_memory_add(&session->handles.memory, bytes))
		return false;
	object->charged += bytes;
	return true;
}

struct part {
	struct gpd_session *session;
	const struct gpd_object *owner;
};

static void forget(struct gpd_session *session, struct gpd_object *object);

static void
forget_if_part_of(struct gpd_handle *handle, void *arg)
{
	struct gpd_object *object = (struct gpd_object *)handle;
	const struct part *part = arg;

	if (object->owner == part->owner)
		forget(part->session, object);
}

static void
forget(struct gpd_session *session, struct gpd_object *object)
{
	struct part part = { session, object };

	for (int kind = 1; kind < GPD_KIND_COUNT; kind++) {
		if (gpd_object_kinds[kind].owner == object->handle.kind)
			gpd_handle_each(&session->handles, (enum gpd_kind)kind, forget_if_part_of,
					&part);
	}
	gpd_handle_remove(&session->handles, &object->handle);
	gpd_name_memory_remove(&session->handles.memory, object->charged);
	gp_scratch_free(&object->memory);
	free(object);
}

void
gpd_object_forget(struct gpd_session *session, enum gpd_kind kind, uint32_t id)
{
	struct gpd_object *object = gpd_object_get(session, kind, id);

	if (object)
		forget(session, object);
}

struct removal {
	struct gpd_session *session;
	const struct gpd_context *context; /* NULL: of all */
};

static void
end_if_of(struct gpd_handle *handle, void *arg)
{
	struct gpd_object *object = (struct gpd_object *)handle;
	const struct removal *removal = arg;

	if (removal->context && object->context != removal->context)
		return;
	if (gpd_device_enter(object->device) == CUDA_SUCCESS)
		(void)gpd_object_kinds[handle->kind].end(object->driver);
	forget(removal->session, object);
}

static void
end_all(struct removal *removal)
{
	for (int kind = 1; kind < GPD_KIND_COUNT; kind++) {
		if (gpd_object_kinds[kind].end)
			gpd_handle_each(&removal->session->handles, (enum gpd_kind)kind, end_if_of,
					removal);
	}
}

void
gpd_objects_forget_context(struct gpd_session *session, const struct gpd_context *context)
{
	end_all(&(struct removal){ session, context });
}

void
gpd_objects_forget_session(struct gpd_session *session)
{
	end_all(&(struct removal){ session, NULL });
}
