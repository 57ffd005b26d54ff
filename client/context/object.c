/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/object.h"

#include "client/base/error.h"
#include "client/session/session.h"

#include <stdlib.h>

CUresult
gpc_object_create(enum gpc_kind kind, struct gpc_context *context, struct gpc_object **object_p)
{
	struct gpc_object *object = gpc_handle_new(kind, sizeof(*object));

	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->context = context;
	*object_p = object;
	return CUDA_SUCCESS;
}

void
gpc_object_destroy(struct gpc_object *object)
{
	gp_scratch_free(&object->memory);
	gpc_handle_remove(&object->handle);
}

void
gpc_object_destroy_by_token(enum gpc_kind kind, const void *token)
{
	struct gpc_object *object = gpc_handle_from_token(kind, token);

	if (object && gpc_handle_claim(kind, token))
		gpc_object_destroy(object);
}

CUresult
gpc_object_to_wire(struct gpc_context **context_p, enum gpc_kind kind, const void *token,
		   uint32_t *id_p)
{
	struct gpc_object *object = gpc_handle_from_token(kind, token);

	if (!object || object->context->device->session != (*context_p)->device->session)
		return CUDA_ERROR_INVALID_HANDLE;
	*context_p = object->context;
	*id_p = object->handle.id;
	return CUDA_SUCCESS;
}

void *
gpc_object_from_wire(enum gpc_kind kind, uint32_t id)
{
	const struct gpc_object *object = id ? gpc_handle_from_id(kind, id) : NULL;

	return object ? object->handle.token : NULL;
}

static void
object_destroy_if_in_context(void *arg, void *context)
{
	struct gpc_object *object = arg;

	if (object->context == context &&
	    gpc_handle_claim(object->handle.kind, object->handle.token))
		gpc_object_destroy(object);
}

void
gpc_objects_drop_context(struct gpc_context *context)
{
	for (int kind = 1; kind < GPC_KIND_COUNT; kind++) {
		if (gpc_kind_has_context_lifetime[kind])
			gpc_handle_each((enum gpc_kind)kind, object_destroy_if_in_context, context);
	}
}

CUresult
gpc_enter_kind(enum gpc_kind kind, const void *token, void *object_p)
{
	CUresult result = gpc_enter_initialized();
	void *object = gpc_handle_from_token(kind, token);

	*(void **)object_p = object;
	return result == CUDA_SUCCESS && !object ? CUDA_ERROR_INVALID_HANDLE : result;
}

CUresult
gpc_enter_device(CUdevice ordinal, struct gpc_context **context_p)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_device *device;

	if (result == CUDA_SUCCESS)
		result = gpc_device_enter(ordinal, &device);
	if (result == CUDA_SUCCESS)
		*context_p = device->primary;
	return result;
}

CUresult
gpc_device_to_wire(const struct gpc_context *context, CUdevice ordinal, int32_t *remote_p)
{
	const struct gpc_device *device = gpc_device_get(ordinal);

	if (!device || device->session != context->device->session)
		return CUDA_ERROR_INVALID_DEVICE;
	*remote_p = device->remote;
	return CUDA_SUCCESS;
}

CUdevice
gpc_device_from_wire(const struct gpc_context *context, int32_t remote)
{
	for (int i = 0; i < gpc_device_count(); i++) {
		const struct gpc_device *device = gpc_device_get(i);

		if (device->session == context->device->session && device->remote == remote)
			return i;
	}
	return -1;
}

CUresult
gpc_context_to_wire(struct gpc_context **context_p, CUcontext token, uint32_t *id_p)
{
	struct gpc_context *context;
	CUresult result = gpc_context_lookup(token, &context);

	if (result == CUDA_SUCCESS)
		result = gpc_context_activate(context);
	if (result != CUDA_SUCCESS)
		return result;
	*context_p = context;
	*id_p = context->handle.id;
	return CUDA_SUCCESS;
}

CUresult
gpc_reply_fail_malformed(const struct gpc_context *context)
{
	gpc_session_fail(context->device->session, GPC_ERROR_LOST, "malformed reply");
	return GPC_ERROR_LOST;
}
