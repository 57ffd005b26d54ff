/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linker of device code (cuLink*): the driver's, with options that are numbers only, and logs
 * that are the daemon's.  No input is ever named to the driver as a file.
 */
#include "gpd_calls.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/context.h"
#include "server/worker/session/object.h"
#include "server/worker/session/session.h"

#include <stdlib.h>
#include <string.h>

#define LOG_SIZE 8192
#define OPTIONS_MAX 32
#define INPUT_MAX ((uint64_t)256 << 20)

struct options {
	unsigned int count;
	CUjit_option keys[OPTIONS_MAX];
	void *values[OPTIONS_MAX];
};

/* In the object's memory: the driver writes here until it ends the linker. */
struct linker {
	struct options options;
	char info[LOG_SIZE];
	char error[LOG_SIZE];
};

static bool
is_number(uint32_t option)
{
	switch (option) {
	case CU_JIT_MAX_REGISTERS:
	case CU_JIT_OPTIMIZATION_LEVEL:
	case CU_JIT_TARGET_FROM_CUCONTEXT:
	case CU_JIT_TARGET:
	case CU_JIT_FALLBACK_STRATEGY:
	case CU_JIT_GENERATE_DEBUG_INFO:
	case CU_JIT_LOG_VERBOSE:
	case CU_JIT_GENERATE_LINE_INFO:
	case CU_JIT_CACHE_MODE:
		return true;
	default:
		return false;
	}
}

static void
put(struct options *options, CUjit_option key, void *value)
{
	options->keys[options->count] = key;
	options->values[options->count++] = value;
}

/* (u32 CUjit_option, u32 0, u64 value) triples.  Others than numbers have no effect. */
static bool
read_options(struct gp_bytes bytes, struct options *options)
{
	if (bytes.size % 16)
		return false;
	for (size_t at = 0; at < bytes.size; at += 16) {
		uint32_t key;
		uint64_t value;

		memcpy(&key, (const uint8_t *)bytes.data + at, sizeof(key));
		memcpy(&value, (const uint8_t *)bytes.data + at + 8, sizeof(value));
		if (!is_number(key))
			continue;
		if (options->count + 4 >= OPTIONS_MAX)
			return false;
		put(options, (CUjit_option)key, (void *)(uintptr_t)value);
	}
	return true;
}

CUresult
gpd_gpLinkCreate(struct gpd_session *session, const struct gp_args_gpLinkCreate *args)
{
	CUresult result = gpd_context_enter(session, session->context);
	struct gp_scratch memory = { 0 };
	struct gpd_object *object;
	struct linker *linker;
	CUlinkState state;

	if (result != CUDA_SUCCESS)
		return result;
	linker = gp_scratch_items(&memory, 1, sizeof(*linker));
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = read_options(args->options, &linker->options) ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		put(&linker->options, CU_JIT_INFO_LOG_BUFFER, linker->info);
		put(&linker->options, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		    (void *)(uintptr_t)(LOG_SIZE - 1));
		put(&linker->options, CU_JIT_ERROR_LOG_BUFFER, linker->error);
		put(&linker->options, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
		    (void *)(uintptr_t)(LOG_SIZE - 1));
		result = gpd_driver.cuLinkCreate_v2(linker->options.count, linker->options.keys,
						    linker->options.values, &state);
	}
	if (result == CUDA_SUCCESS)
		result = gpd_object_add(session, GPD_KIND_LINKER, args->linker, state, NULL);
	object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	if (result != CUDA_SUCCESS || !object) {
		gp_scratch_free(&memory);
		return result;
	}
	object->memory = memory;
	object->extra = linker;
	return CUDA_SUCCESS;
}

/* A copy of a log; the dispatcher frees it. */
static struct gp_bytes
copy_of(const char *text)
{
	char *copy = strndup(text, LOG_SIZE - 1);

	return copy ? (struct gp_bytes){ copy, strlen(copy) } : (struct gp_bytes){ 0 };
}

/* What the client has sent, until *data_p is freed. */
static CUresult
receive(struct gpd_session *session, struct gpd_object *object, void **data_p, size_t *size_p)
{
	uint64_t size = gpd_session_bulk_size(session);

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

static CUresult
add(struct gpd_object *object, const struct gp_args_gpLinkAdd *args, void *data, size_t size)
{
	struct options options = { 0 };
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	char *name;

	if (args->type < 0 || args->type >= CU_JIT_NUM_INPUT_TYPES ||
	    !read_options(args->options, &options))
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver finds the end of PTX by its NUL byte, which is there; it counts as part of it.
	 */
	if (args->type == CU_JIT_INPUT_PTX && ((char *)data)[size - 1])
		size++;
	name = strndup(args->name.size ? args->name.data : "", args->name.size);
	if (name)
		result = gpd_driver.cuLinkAddData_v2(object->driver, (CUjitInputType)args->type,
						     data, size, *name ? name : NULL, options.count,
						     options.keys, options.values);
	free(name);
	return result;
}

CUresult
gpd_gpLinkAdd(struct gpd_session *session, const struct gp_args_gpLinkAdd *args,
	      struct gp_reply_gpLinkAdd *reply)
{
	struct gpd_object *object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	CUresult result = gpd_context_enter(session, session->context);
	const struct linker *linker;
	void *data = NULL;
	size_t size;

	if (!object || result != CUDA_SUCCESS) {
		(void)gpd_session_recv_bulk(session, NULL, gpd_session_bulk_size(session));
		return object ? result : CUDA_ERROR_INVALID_HANDLE;
	}
	linker = object->extra;
	result = receive(session, object, &data, &size);
	if (result == CUDA_SUCCESS)
		result = add(object, args, data, size);
	free(data);
	reply->info = copy_of(linker->info);
	reply->error = copy_of(linker->error);
	return result;
}

CUresult
gpd_gpLinkComplete(struct gpd_session *session, const struct gp_args_gpLinkComplete *args,
		   struct gp_reply_gpLinkComplete *reply)
{
	struct gpd_object *object = gpd_object_get(session, GPD_KIND_LINKER, args->linker);
	CUresult result = gpd_context_enter(session, session->context);
	const struct linker *linker;
	void *image, *copy;
	size_t size;

	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	if (result != CUDA_SUCCESS)
		return result;
	linker = object->extra;
	result = gpd_driver.cuLinkComplete(object->driver, &image, &size);
	if (result == CUDA_SUCCESS) {
		copy = malloc(size);
		if (!copy)
			return CUDA_ERROR_OUT_OF_MEMORY;
		memcpy(copy, image, size);
		reply->image = (struct gp_bytes){ copy, size };
	}
	reply->info = copy_of(linker->info);
	reply->error = copy_of(linker->error);
	return result;
}
