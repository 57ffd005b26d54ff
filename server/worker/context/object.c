/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/context/object.h"

#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

CUresult
gpd_object_add(struct gpd_session *session, enum gpd_kind kind, uint32_t id, void *driver)
{
	struct gpd_context *context = gpd_context_get(session, session->current.context);
	CUresult result;
	struct gpd_object *object =
		gpd_session_create_object(session, kind, id, sizeof(*object), &result);

	if (object) {
		object->driver = driver;
		object->device = context ? context->device : 0;
		object->context = gpd_object_kinds[kind].goes_with_context ? context : NULL;
	} else if (gpd_object_kinds[kind].end) {
		(void)gpd_object_kinds[kind].end(driver);
	}
	return result;
}

struct gpd_object *
gpd_object_get(const struct gpd_session *session, enum gpd_kind kind, uint32_t id)
{
	return gpd_handle_get(&session->handles, kind, id);
}

uint32_t
gpd_object_id(struct gpd_session *session, enum gpd_kind kind, const void *driver)
{
	struct gpd_object *object;
	uint32_t at = 0;

	while ((object = gpd_handle_next(&session->handles, kind, &at)) && object->driver != driver)
		;
	return object ? object->handle.id : 0;
}

bool
gpd_object_charge(struct gpd_session *session, struct gpd_object *object, uint64_t bytes)
{
	if (!gpd_handle_memory_add(&session->handles.memory, bytes))
		return false;
	object->charged += bytes;
	return true;
}

static void
object_free(struct gpd_session *session, struct gpd_object *object)
{
	gpd_handle_remove(&session->handles, &object->handle);
	gpd_handle_memory_remove(&session->handles.memory, object->charged);
	if (object->code)
		gpd_account_uncharge_code(&session->account, object->code);
	gp_scratch_free(&object->memory);
	free(object);
}

void
gpd_object_drop(struct gpd_session *session, enum gpd_kind kind, uint32_t id)
{
	struct gpd_object *object = gpd_object_get(session, kind, id);

	if (object)
		object_free(session, object);
}

void
gpd_objects_destroy_context(struct gpd_session *session, const struct gpd_context *context)
{
	for (int kind = 1; kind < GPD_KIND_COUNT; kind++) {
		const struct gpd_object_kind *object_kind = &gpd_object_kinds[kind];
		struct gpd_object *object;
		uint32_t at = 0;

		while (object_kind->end &&
		       (object = gpd_handle_next(&session->handles, (enum gpd_kind)kind, &at))) {
			if (context && object->context != context)
				continue;
			if (gpd_device_enter(object->device) == CUDA_SUCCESS)
				(void)object_kind->end(object->driver);
			object_free(session, object);
		}
	}
}

void
gpd_objects_destroy_all(struct gpd_session *session)
{
	gpd_objects_destroy_context(session, NULL);
}
