/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/image.h"

#include "client/base/log.h"
#include "client/code/image_inside.h"
#include "client/context/device.h"
#include "client/memory/globals.h"
#include "client/wire/session.h"
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
	char name[];
};

static const struct gpc_image_variable_calls *variable_calls;

void
gpc_image_set_variables(const struct gpc_image_variable_calls *calls)
{
	variable_calls = calls;
}

void
gpc_image_free(struct gpc_image *image)
{
	gpc_image_loading_free(image->loading);
	gpc_function_list_fini(&image->kernels);
	gpc_answers_fini(&image->answers);
	while (image->globals) {
		struct gpc_image_global *next = image->globals->next;

		free(image->globals);
		image->globals = next;
	}
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
	if (gpc_handle_add(GPC_KIND_IMAGE, &image->handle) == 0)
		return image;
	gpc_image_free(image);
	return NULL;
}

struct gpc_image *
gpc_image_in(struct gpc_image *image, const struct gpc_session *session)
{
	while (image && image->device->session != session)
		image = image->twin;
	return image;
}

void
gpc_image_unload(struct gpc_image *image)
{
	struct gp_args_gpImageUnload args = { .image = image->handle.id };

	if (image->twin)
		gpc_image_unload(image->twin);
	(void)gpc_image_await(image);
	if (image->reference_calls)
		image->reference_calls->drop_references(image);
	if (variable_calls)
		variable_calls->forget_image(image->handle.id);
	gpc_globals_forget_image(image->handle.id);
	/* What was not loaded the daemon does not know. */
	if (image->info && gpc_session_status(image->device->session) == CUDA_SUCCESS)
		(void)gpc_post_gpImageUnload(image->device->primary, &args);
	gpc_image_free(image);
}

/* What was set of its kernels goes with the context, as their variables do. */
static void
forget_settings(struct gpc_image *image)
{
	struct gp_image_info *info = __atomic_load_n(&image->info, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; info && i < info->kernel_count; i++) {
		info->kernels[i].varies = 0;
		(void)__atomic_fetch_and(&info->kernels[i].attributes_known,
					 (1u << CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) -
						 1,
					 __ATOMIC_RELEASE);
	}
}

static void
forget_of(void *object, void *arg)
{
	struct gpc_image *image = object;
	struct gpc_image_global **at = &image->globals;
	const struct gpc_context *context = arg;

	pthread_mutex_lock(&image->lock);
	if (image->device == context->device)
		forget_settings(image);
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
gpc_image_forget_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_IMAGE, forget_of, context);
}

int64_t
gpc_image_find(const struct gpc_image *image, const char *name)
{
	for (uint32_t i = 0; i < image->info->kernel_count; i++) {
		if (!image->info->kernels[i].absent &&
		    strcmp(image->info->kernels[i].name, name) == 0)
			return i;
	}
	return -1;
}

static struct gpc_image_global *
find_global(struct gpc_image *image, const struct gpc_context *context, const char *name)
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
gpc_image_has_managed(const struct gpc_image *image, const char *name)
{
	return image->variables && gp_image_variables_is_managed(image->variables, name);
}

/* A place that cannot be would be looked up as what lies there: the program's own memory. */
static CUresult
place_global(struct gpc_image *image, struct gpc_context *context, const char *name,
	     const struct gp_reply_gpImageGlobal *reply)
{
	int r = gpc_globals_add(context, reply->address, reply->size,
				gpc_image_has_managed(image, name), image->handle.id);
	const char *peer = gpc_session_peer(image->device->session);

	if (r == 0)
		return CUDA_SUCCESS;
	if (r < 0) {
		gpc_log_always("%s: a variable is not used: no memory for the %llu bytes of "
			       "addresses of %s, which this process reserves: %s",
			       peer, (unsigned long long)reply->size, name, strerror(-r));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	gpc_log_always("%s: a variable is not used: %s lies at %#llx as the daemon tells, where "
		       "other memory is",
		       peer, name, (unsigned long long)reply->address);
	return CUDA_ERROR_INVALID_IMAGE;
}

static CUresult
add_global(struct gpc_image *image, struct gpc_context *context, const char *name,
	   const struct gp_reply_gpImageGlobal *reply)
{
	struct gpc_image_global *global = malloc(sizeof(*global) + strlen(name) + 1);
	CUresult result;

	if (!global)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = place_global(image, context, name, reply);
	if (result != CUDA_SUCCESS) {
		free(global);
		return result;
	}
	global->context = context;
	global->address = reply->address;
	global->size = reply->size;
	strcpy(global->name, name);
	pthread_mutex_lock(&image->lock);
	global->next = image->globals;
	image->globals = global;
	pthread_mutex_unlock(&image->lock);
	return CUDA_SUCCESS;
}

/* What the daemon says of a variable's size, against what the image says. */
static CUresult
check_global(const struct gpc_image *image, const char *name, uint64_t size)
{
	const char *peer = gpc_session_peer(image->device->session);
	uint64_t has = 0;

	switch (gp_image_variables_judge(image->variables, name, size, &has)) {
	case GP_VARIABLE_DIFFERS:
		gpc_log_always("%s: a variable is not used: %s has %llu bytes in the image, and "
			       "%llu as the daemon tells",
			       peer, name, (unsigned long long)has, (unsigned long long)size);
		return CUDA_ERROR_INVALID_IMAGE;
	case GP_VARIABLE_UNKNOWN:
		/* Of a place that has no bytes nobody would look what lies there. */
		if (size)
			return CUDA_SUCCESS;
		gpc_log_always("%s: a variable is not used: %s has no bytes as the daemon tells, "
			       "and the image is in a form that is not read here",
			       peer, name);
		return CUDA_ERROR_INVALID_IMAGE;
	case GP_VARIABLE_ABSENT:
		gpc_log_always("%s: a variable is not used: %s is not in the image, and has %llu "
			       "bytes as the daemon tells",
			       peer, name, (unsigned long long)size);
		return CUDA_ERROR_NOT_FOUND;
	default:
		return CUDA_SUCCESS;
	}
}

/* Where the daemon says that it is, and how large. */
static CUresult
ask_global(struct gpc_context *context, const struct gp_args_gpImageGlobal *args, bool managed,
	   struct gp_reply_gpImageGlobal *reply)
{
	const struct gp_args_gpImageManaged same = { args->context, args->image, args->name };
	struct gp_reply_gpImageManaged found;
	CUresult result;

	if (!managed)
		return gpc_wait_gpImageGlobal(context, args, reply);
	result = gpc_wait_gpImageManaged(context, &same, &found);
	if (result == CUDA_SUCCESS)
		*reply = (struct gp_reply_gpImageGlobal){ found.address, found.size };
	return result;
}

CUresult
gpc_image_global(struct gpc_image *image, struct gpc_context *context, const char *name,
		 CUdeviceptr *address_p, size_t *size_p)
{
	struct gp_reply_gpImageGlobal reply;
	struct gp_args_gpImageGlobal args = {
		.context = context->handle.id,
		.name = { name, strlen(name) },
	};
	struct gpc_image_global *global;
	CUresult result = CUDA_SUCCESS;

	image = gpc_image_in(image, context->scope.session);
	if (!image)
		return CUDA_ERROR_NOT_FOUND;
	args.image = image->handle.id;
	global = find_global(image, context, name);
	if (global) {
		reply.address = global->address;
		reply.size = global->size;
	} else {
		bool managed = gpc_image_has_managed(image, name);

		result = ask_global(context, &args, managed, &reply);
		if (result == CUDA_SUCCESS)
			result = check_global(image, name, reply.size);
		if (result == CUDA_SUCCESS)
			result = add_global(image, context, name, &reply);
		if (result == CUDA_SUCCESS && managed && variable_calls)
			result = variable_calls->add(context, reply.address, reply.size,
						     image->handle.id);
	}
	if (result != CUDA_SUCCESS)
		return result;
	if (address_p)
		*address_p = reply.address;
	if (size_p)
		*size_p = reply.size;
	return CUDA_SUCCESS;
}
