/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/image.h"

#include "client/base/log.h"
#include "client/code/jit_options.h"
#include "client/code/known_images.h"
#include "client/context/device.h"
#include "client/memory/globals.h"
#include "client/memory/memory.h"
#include "client/wire/session.h"
#include "gpc_calls.h"
#include "image/fatbin.h"
#include "image/image_check.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A first try without the image pays only when the image is larger than what fits a message or two.
 */
#define SEND_AT_ONCE ((size_t)256 << 10)

struct gpc_image_global {
	struct gpc_image_global *next;
	struct gpc_context *context;
	uint64_t address;
	uint64_t size;
	char name[];
};

static CUresult
flatten_result(int r)
{
	switch (r) {
	case 0:
		return CUDA_SUCCESS;
	case GP_IMAGE_E_NONE:
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	case -ENOMEM:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_ERROR_INVALID_IMAGE;
	}
}

static struct gp_image_target
target_of(const struct gpc_device *device)
{
	int major = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int minor = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

	return (struct gp_image_target){
		.software = gpc_session_facts(device->session)->software,
		.major = (unsigned int)major,
		.minor = (unsigned int)minor,
	};
}

/* A view of what the application gave, and the bytes that travel: the part of it that the daemon's
 * GPU can use. */
static CUresult
flatten(const void *source, const struct gp_image_target *target, struct gp_image **view_p,
	void **bytes_p, size_t *size_p)
{
	int r = gp_image_create(source, view_p);

	if (r == 0) {
		r = gp_image_flatten(*view_p, target, bytes_p, size_p);
		if (r)
			gp_image_destroy(*view_p);
	}
	if (r == GP_IMAGE_E_NONE)
		gpc_log(GPC_LOG_ERROR,
			target->software
				? "the image holds no PTX for the software device: build with "
				  "nvcc's -arch=compute_75, "
				  "or any -gencode that embeds PTX"
				: "the image holds no code for this GPU (compute capability %u.%u)",
			target->major, target->minor);
	if (r < 0)
		gpc_log(GPC_LOG_ERROR, "the image cannot be read: %s", strerror(-r));
	return flatten_result(r);
}

static bool
digest(const void *bytes, size_t size, uint8_t sha256[GPC_SHA256_SIZE])
{
	return EVP_Digest(bytes, size, sha256, NULL, EVP_sha256(), NULL) == 1;
}

/* Asks the daemon to load the bytes; sends them when it has not seen them before. */
static CUresult
load_and_wait(struct gpc_context *context, uint32_t id, const void *bytes, size_t size,
	      const uint8_t sha256[GPC_SHA256_SIZE], const struct gpc_jit_options *options,
	      struct gp_image_info **info_p)
{
	struct iovec bulk = { .iov_base = (void *)bytes, .iov_len = size };
	struct gp_reply_gpImageLoad reply = { 0 };
	struct gp_args_gpImageLoad args = { .context = context->handle.id,
					    .image = id,
					    .sha256 = { sha256, GPC_SHA256_SIZE },
					    .size = size };
	bool send = size <= SEND_AT_ONCE, reclaimed = false;
	void *encoded = NULL, *raw = NULL;
	CUresult result;

	result = gpc_jit_options_encode(options, &encoded, &args.options);
	if (result != CUDA_SUCCESS)
		return result;
	do {
		free(raw);
		result = gpc_wait_gpImageLoad(context, &args, &reply, send ? &bulk : NULL,
					      send ? 1 : 0, &raw);
		/* Memory that is kept for later may be what is missing. */
	} while ((result == CUDA_SUCCESS && reply.missing && !send && (send = true)) ||
		 (result == CUDA_ERROR_OUT_OF_MEMORY && !reclaimed && (reclaimed = true) &&
		  gpc_memory_reclaim(context) == CUDA_SUCCESS));
	gpc_jit_options_log(options, result, reply.log);
	if (result == CUDA_SUCCESS &&
	    (reply.missing || gp_image_info_decode(info_p, reply.info) < 0)) {
		gpc_session_fail(context->scope.session, CUDA_ERROR_SYSTEM_NOT_READY,
				 "the daemon's list of kernels is malformed");
		result = CUDA_ERROR_SYSTEM_NOT_READY;
	}
	free(raw);
	free(encoded);
	return result;
}

/* What the daemon has promised is loaded without waiting. */
static CUresult
load(struct gpc_context *context, uint32_t id, const void *bytes, size_t size,
     const struct gpc_jit_options *options, struct gp_image_info **info_p)
{
	struct gp_args_gpImageUse args = { .context = context->handle.id, .image = id };
	uint8_t sha256[GPC_SHA256_SIZE];

	if (!digest(bytes, size, sha256))
		return CUDA_ERROR_UNKNOWN;
	if ((options && options->count) || !gpc_known_images_use(context->device, sha256, info_p))
		return load_and_wait(context, id, bytes, size, sha256, options, info_p);
	args.sha256 = (struct gp_bytes){ sha256, sizeof(sha256) };
	return gpc_post_gpImageUse(context, &args);
}

/* Launches copy as many bytes out of the program's memory as parameters have, so it is for the
 * program's image to say how many these are, and not for the daemon; likewise for variables, which
 * programs copy as a whole. */
static CUresult
check(struct gpc_image *image, const struct gp_image *view, const struct gp_image_target *target)
{
	char difference[GP_IMAGE_DIFFERENCE_SIZE];
	int r = gp_image_check(view, target, image->info, &image->variables, difference);

	if (r == GP_IMAGE_E_DIFFERS)
		gpc_log_always("%s: an image is not used: %s",
			       gpc_session_peer(image->device->session), difference);
	if (r == 0)
		return CUDA_SUCCESS;
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_IMAGE;
}

/* The daemon has loaded it. */
static CUresult
take_kernels(struct gpc_image *image, const struct gp_image *view,
	     const struct gp_image_target *target)
{
	image->kernels.kind = GPC_KIND_KERNEL;
	image->kernels.image = image;
	if (!gpc_function_list_init(&image->kernels))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return check(image, view, target);
}

static void
image_free(struct gpc_image *image)
{
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

CUresult
gpc_image_load(struct gpc_context *context, const void *source,
	       const struct gpc_jit_options *options, struct gpc_image **image_p)
{
	struct gp_image_target target = target_of(context->device);
	struct gpc_image *image;
	struct gp_image *view;
	void *bytes;
	size_t size;
	CUresult result;

	if (!source)
		return CUDA_ERROR_INVALID_VALUE;
	result = flatten(source, &target, &view, &bytes, &size);
	if (result != CUDA_SUCCESS)
		return result;
	image = calloc(1, sizeof(*image));
	if (!image) {
		free(bytes);
		gp_image_destroy(view);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	image->device = context->device;
	pthread_mutex_init(&image->lock, NULL);
	result = CUDA_ERROR_OUT_OF_MEMORY;
	if (gpc_handle_add(GPC_KIND_IMAGE, &image->handle) == 0)
		result = load(context, image->handle.id, bytes, size, options, &image->info);
	free(bytes);
	if (result != CUDA_SUCCESS) {
		image_free(image);
	} else {
		result = take_kernels(image, view, &target);
		if (result == CUDA_SUCCESS)
			*image_p = image;
		else
			gpc_image_unload(image);
	}
	gp_image_destroy(view);
	return result;
}

static void *
read_file(const char *path, CUresult *result_p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data = NULL;
	ssize_t got = 0;
	size_t size = 0;

	*result_p = fd < 0 ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
	    (uint64_t)st.st_size <= GP_IMAGE_SIZE_MAX) {
		/* Zeros behind it end PTX text, and stop whoever reads the header of a short file.
		 */
		data = calloc(1, (size_t)st.st_size + 64);
		*result_p = data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		while (data && size < (size_t)st.st_size &&
		       (got = read(fd, data + size, (size_t)st.st_size - size)) > 0)
			size += (size_t)got;
		if (data && size < (size_t)st.st_size)
			*result_p = CUDA_ERROR_INVALID_IMAGE;
	}
	if (fd >= 0)
		close(fd);
	return data;
}

CUresult
gpc_image_read_file(const char *path, void **source_p)
{
	CUresult result;

	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	*source_p = read_file(path, &result);
	if (result == CUDA_SUCCESS)
		return result;
	free(*source_p);
	return result;
}

/* Any of its contexts will do to load a library. */
static struct gpc_context *
context_of_session(const struct gpc_session *session)
{
	for (int i = 0; i < gpc_device_count(); i++) {
		if (gpc_device_get(i)->session == session)
			return gpc_device_get(i)->primary;
	}
	return NULL;
}

void
gpc_image_load_twins(struct gpc_image *image, const void *source,
		     const struct gpc_jit_options *options)
{
	struct gpc_image *last = image;

	for (int i = 0; i < gpc_session_count(); i++) {
		struct gpc_session *session = gpc_session_at(i);
		struct gpc_context *context = context_of_session(session);

		if (session == image->device->session || !context ||
		    gpc_image_load(context, source, options, &last->twin) != CUDA_SUCCESS)
			continue;
		last = last->twin;
	}
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
	gpc_globals_forget_image(image->handle.id);
	if (gpc_session_status(image->device->session) == CUDA_SUCCESS)
		(void)gpc_post_gpImageUnload(image->device->primary, &args);
	image_free(image);
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

/* A place that cannot be would be looked up as what lies there: the program's own memory. */
static CUresult
place_global(struct gpc_image *image, struct gpc_context *context, const char *name,
	     const struct gp_reply_gpImageGlobal *reply)
{
	int r = gpc_globals_add(context, reply->address, reply->size, image->handle.id);
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
		result = gpc_wait_gpImageGlobal(context, &args, &reply);
		if (result == CUDA_SUCCESS)
			result = check_global(image, name, reply.size);
		if (result == CUDA_SUCCESS)
			result = add_global(image, context, name, &reply);
	}
	if (result != CUDA_SUCCESS)
		return result;
	if (address_p)
		*address_p = reply.address;
	if (size_p)
		*size_p = reply.size;
	return CUDA_SUCCESS;
}
