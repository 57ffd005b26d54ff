/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device code linker (cuLink*): the driver's, with numeric options only and log buffers of the
 * daemon. Inputs are never passed to the driver by file name.
 */
#include "gpd_calls.h"
#include "image/code_check.h"
#include "image/fatbin.h"
#include "server/worker/context/context.h"
#include "server/worker/context/object.h"
#include "server/worker/device/driver.h"
#include "server/worker/module/image_bytes.h"
#include "server/worker/module/jit_options.h"
#include "server/worker/module/library.h"
#include "server/worker/module/unpacking.h"
#include "server/worker/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX ((uint64_t)256 << 20)

CUresult
gpd_gpLinkCreate(struct gpd_session *session, const struct gp_args_gpLinkCreate *args)
{
	CUresult result = gpd_context_enter(session, session->current.context);
	struct gp_scratch memory = { 0 };
	struct gpd_object *object;
	struct gpd_jit *linker;
	CUlinkState state;

	if (result != CUDA_SUCCESS)
		return result;
	/* Stored with the object: the driver writes there until the linker is destroyed. */
	linker = gp_scratch_alloc(&memory, 1, sizeof(*linker));
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_jit_read(&linker->options, args->options);
	if (result == CUDA_SUCCESS) {
		gpd_jit_add_logs(linker);
		result = gpd_driver.cuLinkCreate_v2(linker->options.count, linker->options.keys,
						    linker->options.values, &state);
	}
	if (result == CUDA_SUCCESS)
		result = gpd_object_add(session, GPD_KIND_LINKER, args->linker, state);
	object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	if (result != CUDA_SUCCESS || !object) {
		gp_scratch_free(&memory);
		return result;
	}
	object->memory = memory;
	object->extra = linker;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpLinkDrop(struct gpd_session *session, const struct gp_args_gpLinkDrop *args)
{
	struct gpd_object *object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	CUresult result = gpd_context_enter(session, session->current.context);

	if (!object || result != CUDA_SUCCESS)
		return object ? result : CUDA_ERROR_INVALID_HANDLE;
	result = gpd_driver.cuLinkDestroy(object->driver);
	gpd_object_drop(session, GPD_KIND_LINKER, args->linker);
	return result;
}

/* Copies a log; the dispatcher frees it. */
static void
log_copy(const char *text, struct gp_bytes *copy_p)
{
	(void)gpd_bytes_copy((struct gp_bytes){ text, strnlen(text, GPD_JIT_LOG_SIZE - 1) },
			     copy_p);
}

/* Receives the client's input. The caller frees *data_p in any case. */
static CUresult
input_recv(struct gpd_session *session, struct gpd_object *object, void **data_p, size_t *size_p)
{
	uint64_t size = session->current.bulk_left;

	*data_p = NULL;
	*size_p = size;
	if (size == 0 || size > INPUT_MAX || !gpd_object_charge(session, object, size)) {
		(void)gpd_session_recv_bulk(session, NULL, size);
		return size == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	}
	*data_p = calloc(1, size + 1);
	if (gpd_session_recv_bulk(session, *data_p, size))
		return CUDA_ERROR_UNKNOWN;
	return *data_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver follows offsets in fatbins, also inside objects and libraries, without checks. */
static CUresult
input_check(struct gpd_session *session, CUjitInputType type, const void *data, size_t size)
{
	char line[300];
	int r = gp_fatbin_check_embedded(data, size, type == CU_JIT_INPUT_FATBINARY);
	struct gpd_unpacking unpacking;

	gpd_unpacking_init(&unpacking, session);
	if (!r)
		r = gp_code_check_embedded(data, size, type == CU_JIT_INPUT_CUBIN,
					   &unpacking.limiter);
	if (r != -EBADMSG)
		return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	gpd_session_log(session, GPD_LOG_WARNING, "linking refused: %s", gp_image_get_error());
	(void)snprintf(line, sizeof(line), "gpupool: linking refused: %s\n", gp_image_get_error());
	(void)gpd_session_send_complaint(session, line);
	return CUDA_ERROR_INVALID_IMAGE;
}

static uint64_t
get_driver_size(const struct gpd_object *object, CUjitInputType type, const void *data, size_t size)
{
	const struct gp_image_target target = gpd_image_target(object->device);

	return type == CU_JIT_INPUT_PTX ? size : gp_code_driver_size(data, size, &target);
}

static CUresult
linker_charge(struct gpd_session *session, struct gpd_object *object, uint64_t size)
{
	CUresult result = gpd_unpacking_charge(session, size);

	if (result == CUDA_SUCCESS)
		object->code += size;
	return result;
}

static CUresult
input_add(struct gpd_session *session, struct gpd_object *object,
	  const struct gp_args_gpLinkAdd *args, void *data, size_t size)
{
	struct gpd_jit_options options = { 0 };
	CUresult result = gpd_jit_read(&options, args->options);
	struct gpd_unpacking unpacking;
	uint64_t driver_size;
	char *name;

	if (args->type < 0 || args->type >= CU_JIT_NUM_INPUT_TYPES)
		return CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = input_check(session, (CUjitInputType)args->type, data, size);
	if (result != CUDA_SUCCESS)
		return result;
	driver_size = get_driver_size(object, (CUjitInputType)args->type, data, size);
	result = linker_charge(session, object, driver_size);
	if (result != CUDA_SUCCESS)
		return result;
	if (args->type == CU_JIT_INPUT_PTX && ((char *)data)[size - 1])
		size++;
	name = strndup(args->name.size ? args->name.data : "", args->name.size);
	result = CUDA_ERROR_OUT_OF_MEMORY;
	if (name && gpd_unpacking_begin(&unpacking, session, driver_size)) {
		result = gpd_driver.cuLinkAddData_v2(object->driver, (CUjitInputType)args->type,
						     data, size, *name ? name : NULL, options.count,
						     options.keys, options.values);
		gpd_unpacking_end(&unpacking);
	}
	free(name);
	return result;
}

CUresult
gpd_gpLinkAdd(struct gpd_session *session, const struct gp_args_gpLinkAdd *args,
	      struct gp_reply_gpLinkAdd *reply)
{
	struct gpd_object *object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	CUresult result = gpd_context_enter(session, session->current.context);
	const struct gpd_jit *linker;
	void *data = NULL;
	size_t size;

	if (!object || result != CUDA_SUCCESS) {
		(void)gpd_session_recv_bulk(session, NULL, session->current.bulk_left);
		return object ? result : CUDA_ERROR_INVALID_HANDLE;
	}
	linker = object->extra;
	result = input_recv(session, object, &data, &size);
	if (result == CUDA_SUCCESS)
		result = input_add(session, object, args, data, size);
	free(data);
	log_copy(linker->info, &reply->info);
	log_copy(linker->error, &reply->error);
	return result;
}

CUresult
gpd_gpLinkComplete(struct gpd_session *session, const struct gp_args_gpLinkComplete *args,
		   struct gp_reply_gpLinkComplete *reply)
{
	struct gpd_object *object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	CUresult result = gpd_context_enter(session, session->current.context);
	const struct gpd_jit *linker = object ? object->extra : NULL;
	struct gpd_unpacking unpacking;
	void *image;
	size_t size;

	if (!object || result != CUDA_SUCCESS)
		return object ? result : CUDA_ERROR_INVALID_HANDLE;
	if (!gpd_unpacking_begin(&unpacking, session, object->code))
		return CUDA_ERROR_DEINITIALIZED;
	result = gpd_driver.cuLinkComplete(object->driver, &image, &size);
	gpd_unpacking_end(&unpacking);
	if (result == CUDA_SUCCESS &&
	    !gpd_bytes_copy((struct gp_bytes){ image, size }, &reply->image))
		return CUDA_ERROR_OUT_OF_MEMORY;
	log_copy(linker->info, &reply->info);
	log_copy(linker->error, &reply->error);
	return result;
}
