/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/image.h"

#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/context/device.h"
#include "client/context/object.h"
#include "client/memory/globals.h"
#include "client/module/image_internal.h"
#include "client/module/image_preload.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "image/image_check.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct gpc_image_global {
	struct gpc_image_global *next;
	struct gpc_context *context;
	uint64_t address;
	uint64_t size;
	bool used; /* the program has requested its address */
	char name[];
};

static const struct gpc_image_variable_calls *variable_calls;

void
gpc_image_set_variable_calls(const struct gpc_image_variable_calls *calls)
{
	variable_calls = calls;
}

void
gpc_image_free(struct gpc_image *image)
{
	gpc_image_loading_free(image->loading);
	gpc_function_list_fini(&image->kernels);
	gpc_query_cache_fini(&image->answers);
	while (image->globals) {
		struct gpc_image_global *next = image->globals->next;

		free(image->globals);
		image->globals = next;
	}
	gpc_image_settings_free(image->settings);
	if (image->handle.id)
		gpc_handle_remove(&image->handle);
	gp_image_info_destroy(image->info);
	gp_image_variables_destroy(image->variables);
	pthread_mutex_destroy(&image->lock);
	free(image);
}

struct gpc_image *
gpc_image_create(struct gpc_context *context)
{
	struct gpc_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->device = context->device;
	pthread_mutex_init(&image->lock, NULL);
	image->answers = (struct gpc_query_cache)GPC_QUERY_CACHE(GPC_IMAGE_ANSWERS_MAX);
	if (gpc_handle_add(GPC_KIND_IMAGE, &image->handle) == 0)
		return image;
	gpc_image_free(image);
	return NULL;
}

struct gpc_image *
gpc_image_get_twin(struct gpc_image *image, const struct gpc_session *session)
{
	while (image && image->device->session != session)
		image = image->twin;
	return image;
}

void
gpc_image_unload(struct gpc_image *image)
{
	if (image->twin)
		gpc_image_unload(image->twin);
	(void)gpc_image_await(image);
	if (image->reference_calls)
		image->reference_calls->drop_references(image);
	if (variable_calls)
		variable_calls->drop_image(image->handle.id);
	gpc_globals_drop_image(image->handle.id);
	gpc_function_list_fini(&image->kernels);
	gpc_image_preload_unload(image);
	gpc_image_free(image);
}

/* Kernel settings are lost with the context, as variables are. */
static void
settings_invalidate(struct gpc_image *image)
{
	struct gp_image_info *info = __atomic_load_n(&image->info, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; info && i < info->kernel_count; i++) {
		info->kernels[i].varies = 0;
		(void)__atomic_fetch_and(
			&info->kernels[i].attributes_known,
			GP_KERNEL_UNSUPPORTED |
				((1u << CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) - 1),
			__ATOMIC_RELEASE);
	}
}

static void
image_drop_if_in_context(void *object, void *arg)
{
	struct gpc_image *image = object;
	struct gpc_image_global **at = &image->globals;
	const struct gpc_context *context = arg;

	pthread_mutex_lock(&image->lock);
	if (image->device == context->device)
		settings_invalidate(image);
	while (*at) {
		struct gpc_image_global *global = *at;

		if (global->context != context) {
			at = &global->next;
			continue;
		}
		*at = global->next;
		free(global);
	}
	pthread_mutex_unlock(&image->lock);
}

void
gpc_image_drop_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_IMAGE, image_drop_if_in_context, context);
}

int64_t
gpc_image_find_kernel(const struct gpc_image *image, const char *name)
{
	for (uint32_t i = 0; i < image->info->kernel_count; i++) {
		if (!image->info->kernels[i].absent &&
		    strcmp(image->info->kernels[i].name, name) == 0)
			return i;
	}
	return -1;
}

static struct gpc_image_global *
global_find(struct gpc_image *image, const struct gpc_context *context, const char *name)
{
	struct gpc_image_global *global;

	pthread_mutex_lock(&image->lock);
	for (global = image->globals; global; global = global->next) {
		if (global->context == context && strcmp(global->name, name) == 0)
			break;
	}
	pthread_mutex_unlock(&image->lock);
	return global;
}

bool
gpc_image_is_managed(const struct gpc_image *image, const char *name)
{
	return image->variables && gp_image_variables_is_managed(image->variables, name);
}

/* Reserves the address range of a variable. If other memory is mapped there, the address would be
 * looked up as the program's own memory. */
static CUresult
global_reserve(struct gpc_image *image, struct gpc_context *context, const char *name,
	       const struct gp_reply_gpImageGlobal *reply)
{
	int r = gpc_globals_add(context, reply->address, reply->size,
				gpc_image_is_managed(image, name), image->handle.id);
	const char *peer = gpc_session_peer(image->device->session);

	if (r == 0)
		return CUDA_SUCCESS;
	if (r < 0) {
		gpc_log_always("%s: a variable is not used: cannot reserve the %llu bytes of "
			       "addresses of %s, which this process reserves: %s",
			       peer, (unsigned long long)reply->size, name, strerror(-r));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	gpc_log_always("%s: a variable is not used: %s lies at %#llx as the daemon reports, where "
		       "other memory is",
		       peer, name, (unsigned long long)reply->address);
	return CUDA_ERROR_INVALID_IMAGE;
}

/* Returns NULL if out of memory. */
static struct gpc_image_global *
global_add(struct gpc_image *image, struct gpc_context *context, const char *name,
	   const struct gp_reply_gpImageGlobal *reply)
{
	struct gpc_image_global *global = calloc(1, sizeof(*global) + strlen(name) + 1);

	if (!global)
		return NULL;
	global->context = context;
	global->address = reply->address;
	global->size = reply->size;
	strcpy(global->name, name);
	pthread_mutex_lock(&image->lock);
	global->next = image->globals;
	image->globals = global;
	pthread_mutex_unlock(&image->lock);
	return global;
}

/* Compares the size that the daemon reports with that in the image. */
static CUresult
global_check(const struct gpc_image *image, const char *name, uint64_t size)
{
	const char *peer = gpc_session_peer(image->device->session);
	uint64_t has = 0;

	switch (gp_image_variables_check(image->variables, name, size, &has)) {
	case GP_VARIABLE_DIFFERS:
		gpc_log_always("%s: a variable is not used: %s has %llu bytes in the image, and "
			       "%llu as the daemon reports",
			       peer, name, (unsigned long long)has, (unsigned long long)size);
		return CUDA_ERROR_INVALID_IMAGE;
	case GP_VARIABLE_UNKNOWN:
		/* With size 0 nothing is reserved at the address, so it would remain unchecked. */
		if (size)
			return CUDA_SUCCESS;
		gpc_log_always("%s: a variable is not used: %s has no bytes as the daemon reports, "
			       "and the format of the image is not supported",
			       peer, name);
		return CUDA_ERROR_INVALID_IMAGE;
	case GP_VARIABLE_ABSENT:
		return CUDA_ERROR_NOT_FOUND;
	default:
		return CUDA_SUCCESS;
	}
}

/* A query in flight. */
struct pending {
	struct gpc_request request;
	const char *name;
};

static CUresult
global_query_start(struct gpc_image *image, struct gpc_context *context, const char *name,
		   struct pending *pending)
{
	const struct gp_args_gpImageGlobal args = { context->handle.id,
						    image->handle.id,
						    { name, strlen(name) } };

	*pending = (struct pending){ .name = name };
	return gpc_start_gpImageGlobal(context, &args, &pending->request);
}

/* A program that requests one of a few variables soon requests the others. */
static size_t
globals_query_others(struct gpc_image *image, struct gpc_context *context, const char *name,
		     struct pending *others)
{
	const char *other;
	size_t count = 0;

	for (size_t i = 0; (other = gp_image_variables_get_name(image->variables, i)); i++) {
		if (strcmp(other, name) != 0 && !gpc_image_is_managed(image, other) &&
		    !global_find(image, context, other) &&
		    global_query_start(image, context, other, &others[count]) == CUDA_SUCCESS)
			count++;
	}
	return count;
}

/* Adds the variable if the query succeeded with this result. */
static CUresult
global_query_finish(struct gpc_image *image, struct gpc_context *context, struct pending *pending,
		    CUresult result)
{
	struct gp_reply_gpImageGlobal reply = { 0 };
	struct gp_dec dec;

	gp_dec_init(&dec, pending->request.reply, pending->request.reply_size);
	if (result == CUDA_SUCCESS)
		gp_reply_gpImageGlobal_decode(&dec, &reply);
	if (result == CUDA_SUCCESS && !gp_dec_done(&dec))
		result = gpc_reply_fail_malformed(context);
	free(pending->request.reply);
	if (result == CUDA_SUCCESS && !global_add(image, context, pending->name, &reply))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

/* Queries address and size of a variable, and in the same round trip those of the other variables
 * if there are few. If one of the others fails, it is queried again when it is needed. */
static CUresult
global_query(struct gpc_image *image, struct gpc_context *context, const char *name)
{
	struct pending pending, others[GP_VARIABLE_NAMES_MAX];
	CUresult result = global_query_start(image, context, name, &pending);
	size_t count;

	if (result != CUDA_SUCCESS)
		return result;
	gpc_stats_wait_start(GP_CALL_gpImageGlobal);
	count = globals_query_others(image, context, name, others);
	result = global_query_finish(image, context, &pending, gpc_request_wait(&pending.request));
	for (size_t i = 0; i < count; i++)
		(void)global_query_finish(image, context, &others[i],
					  gpc_request_wait_own(&others[i].request));
	gpc_stats_wait_stop();
	return result;
}

static CUresult
managed_global_query(struct gpc_image *image, struct gpc_context *context, const char *name)
{
	const struct gp_args_gpImageManaged args = { context->handle.id,
						     image->handle.id,
						     { name, strlen(name) } };
	struct gp_reply_gpImageManaged found = { 0 };
	CUresult result = gpc_wait_gpImageManaged(context, &args, &found);
	const struct gp_reply_gpImageGlobal reply = { found.address, found.size };

	if (result == CUDA_SUCCESS && !global_add(image, context, name, &reply))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return result;
}

/* Validates and reserves a variable when the program first requests it. */
static CUresult
global_use(struct gpc_image *image, struct gpc_context *context, struct gpc_image_global *global)
{
	const struct gp_reply_gpImageGlobal stored = { global->address, global->size };
	CUresult result;

	if (__atomic_load_n(&global->used, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	result = global_check(image, global->name, global->size);
	if (result == CUDA_SUCCESS)
		result = global_reserve(image, context, global->name, &stored);
	if (result == CUDA_SUCCESS && variable_calls && gpc_image_is_managed(image, global->name))
		result = variable_calls->add(context, global->address, global->size,
					     image->handle.id);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&global->used, true, __ATOMIC_RELEASE);
	return result;
}

CUresult
gpc_image_get_global(struct gpc_image *image, struct gpc_context *context, const char *name,
		     CUdeviceptr *address_p, size_t *size_p)
{
	struct gpc_image_global *global;
	CUresult result;
	uint64_t has;

	image = gpc_image_get_twin(image, context->scope.session);
	if (!image ||
	    gp_image_variables_check(image->variables, name, 0, &has) == GP_VARIABLE_ABSENT)
		return CUDA_ERROR_NOT_FOUND;
	global = global_find(image, context, name);
	if (!global) {
		result = gpc_image_is_managed(image, name)
				 ? managed_global_query(image, context, name)
				 : global_query(image, context, name);
		if (result != CUDA_SUCCESS)
			return result;
		global = global_find(image, context, name);
	}
	/* Another thread may have reset the context in the meantime. */
	result = global ? global_use(image, context, global) : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (result != CUDA_SUCCESS)
		return result;
	if (address_p)
		*address_p = global->address;
	if (size_p)
		*size_p = global->size;
	return CUDA_SUCCESS;
}
