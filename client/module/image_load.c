/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of images: selects the code to send, sends it if the daemon does not have it, and
 * validates the reply. */
#include "base/lock.h"
#include "base/sha256.h"
#include "client/base/error.h"
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/context/device.h"
#include "client/memory/memory.h"
#include "client/module/image.h"
#include "client/module/image_internal.h"
#include "client/module/image_preload.h"
#include "client/module/jit_options.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "image/fatbin.h"
#include "image/image_check.h"
#include "protocol/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

/* Trying without the code first pays only if the code is larger than a message or two. */
#define SEND_AT_ONCE ((size_t)256 << 10)

atomic_bool gpc_image_any_uses_printf;

/* Serializes threads that wait for asynchronous loads. */
static pthread_mutex_t loading_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpc_image_loading *all_loading GP_GUARDED_BY(loading_lock); /* utlist */

static CUresult
image_error_to_cuda(int r)
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
device_to_image_target(const struct gpc_device *device)
{
	int major = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	int minor = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

	return (struct gp_image_target){
		.software = gpc_session_facts(device->session)->software,
		.major = (unsigned int)major,
		.minor = (unsigned int)minor,
	};
}

/* Parses the application's image and extracts the code to send, which is the part that the daemon's
 * GPU can use. */
static CUresult
image_flatten(const void *source, const struct gp_image_target *target, struct gp_image **view_p,
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
				? "the image contains no PTX for the software device: build with "
				  "nvcc's -arch=compute_75, or any -gencode that embeds PTX"
				: "the image contains no code for this GPU (compute capability "
				  "%u.%u)",
			target->major, target->minor);
	if (r < 0)
		gpc_log(GPC_LOG_ERROR, "the image cannot be read: %s",
			r == -EBADMSG ? gp_image_get_error() : strerror(-r));
	return image_error_to_cuda(r);
}

/* An asynchronous load whose reply has not been processed; the image owns it. */
struct gpc_image_loading {
	struct gpc_image_loading *prev, *next; /* in all_loading */
	struct gpc_request request;
	struct gpc_context *context;
	void *bytes;
	size_t size;
};

static CUresult
kernel_list_fail(struct gpc_context *context)
{
	gpc_session_fail(context->scope.session, GPC_ERROR_LOST,
			 "the daemon's list of kernels is malformed");
	return GPC_ERROR_LOST;
}

/* The software device may refuse compiled code that a GPU would load, and the program may ignore
 * the error. Source text of the program's own would be as wrong on a GPU, so it is not reported. */
static void
load_report_failure(const struct gpc_context *context, const void *bytes, CUresult result,
		    struct gp_bytes log)
{
	const struct gpc_session *session = context->scope.session;
	const char *text = log.data;
	size_t length = 0;

	if (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY || !log.size ||
	    !gpc_session_facts(session)->software || gp_image_kind(bytes) != GP_IMAGE_FATBIN)
		return;
	while (length < log.size && text[length] && text[length] != '\n')
		length++;
	gpc_log_warn("%s: the software device does not load an image (error %d): %.*s",
		     gpc_session_peer(session), (int)result, (int)length, text);
}

/* Loads the code in the daemon and waits. Sends the code if the daemon does not have it. */
static CUresult
image_load_and_wait(struct gpc_context *context, uint32_t id, const void *bytes, size_t size,
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
	struct gp_scratch scratch = { 0 };
	void *raw = NULL;
	CUresult result = gpc_options_encode_CUjit_option(options->count, options->keys,
							  options->values, &scratch, &args.options);

	if (result != CUDA_SUCCESS) {
		gp_scratch_free(&scratch);
		return result;
	}
	do {
		free(raw);
		result = gpc_wait_gpImageLoad(context, &args, &reply, send ? &bulk : NULL,
					      send ? 1 : 0, &raw);
		/* Memory cached by this client may be all that is missing. */
	} while ((result == CUDA_SUCCESS && reply.missing && !send && (send = true)) ||
		 (result == CUDA_ERROR_OUT_OF_MEMORY && gpc_image_preload_drop(context)) ||
		 (result == CUDA_ERROR_OUT_OF_MEMORY && !reclaimed && (reclaimed = true) &&
		  gpc_memory_reclaim(context) == CUDA_SUCCESS));
	gpc_jit_options_log(options, result, reply.log);
	load_report_failure(context, bytes, result, reply.log);
	if (result == CUDA_SUCCESS &&
	    (reply.missing || gp_image_info_decode(info_p, reply.info) < 0))
		result = kernel_list_fail(context);
	free(raw);
	gp_scratch_free(&scratch);
	return result;
}

/* Security: a launch copies as many bytes from the program's memory as its parameters have, so
 * their size must come from the program's own image, not from the daemon. The same applies to
 * variables, which programs copy as a whole. */
static CUresult
image_check(struct gpc_image *image, const struct gp_image *view,
	    const struct gp_image_target *target)
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

/* The daemon has loaded the image, or the load has been posted. */
static CUresult
image_init_kernels(struct gpc_image *image, const struct gp_image *view,
		   const struct gp_image_target *target)
{
	CUresult result;

	image->kernels.kind = GPC_KIND_KERNEL;
	image->kernels.image = image;
	if (!gpc_function_list_init(&image->kernels))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = image_check(image, view, target);
	if (image->info->prints)
		atomic_store(&gpc_image_any_uses_printf, true);
	if (result == CUDA_SUCCESS)
		gpc_image_preload_add(image);
	return result;
}

void
gpc_image_loading_free(struct gpc_image_loading *loading)
{
	if (!loading)
		return;
	free(loading->request.reply);
	free(loading->bytes);
	free(loading);
}

/* The reply is read along with others; no thread is woken for it. */
static void
loading_ignore_reply(struct gpc_request *request)
{
}

/* Takes ownership of bytes. */
static CUresult
loading_start(struct gpc_image *image, struct gpc_context *context, void *bytes, size_t size)
{
	struct gpc_image_loading *loading = calloc(1, sizeof(*loading));
	const struct gp_args_gpImageLoad args = { .context = context->handle.id,
						  .image = image->handle.id,
						  .sha256 = { image->sha256, GPC_SHA256_SIZE },
						  .size = size };
	const struct iovec bulk = { .iov_base = bytes, .iov_len = size };
	bool send = size <= SEND_AT_ONCE;
	CUresult result;

	if (!loading) {
		free(bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	loading->request = (struct gpc_request){ .done = loading_ignore_reply, .lazy = true };
	loading->context = context;
	loading->bytes = bytes;
	loading->size = size;
	image->loading = loading;
	result = gpc_start_gpImageLoad(context, &args, &loading->request, send ? &bulk : NULL,
				       send ? 1 : 0);
	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&loading_lock);
	DL_APPEND(all_loading, loading);
	(void)pthread_mutex_unlock(&loading_lock);
	return CUDA_SUCCESS;
}

/* *retry_p: load again, because the daemon needs the code or may have memory then. */
static CUresult
loading_recv(struct gpc_image_loading *loading, struct gp_image_info **info_p, bool *retry_p)
{
	CUresult result = gpc_request_wait_own(&loading->request);
	struct gp_reply_gpImageLoad reply = { 0 };
	struct gp_dec dec;

	*retry_p = result == CUDA_ERROR_OUT_OF_MEMORY;
	gp_dec_init(&dec, loading->request.reply, loading->request.reply_size);
	if (loading->request.reply)
		gp_reply_gpImageLoad_decode(&dec, &reply);
	if (result != CUDA_SUCCESS) {
		if (gp_dec_done(&dec))
			load_report_failure(loading->context, loading->bytes, result, reply.log);
		return result;
	}
	*retry_p = gp_dec_done(&dec) && reply.missing;
	if (*retry_p)
		return CUDA_SUCCESS;
	if (gp_dec_done(&dec) && gp_image_info_decode(info_p, reply.info) == 0)
		return CUDA_SUCCESS;
	return kernel_list_fail(loading->context);
}

static CUresult
loading_finish(struct gpc_image *image)
{
	struct gpc_image_loading *loading = image->loading;
	struct gp_image_target target = device_to_image_target(image->device);
	const struct gpc_jit_options none = { 0 };
	struct gp_image *view;
	bool retry;
	CUresult result = loading_recv(loading, &image->info, &retry);

	if (retry)
		result = image_load_and_wait(loading->context, image->handle.id, loading->bytes,
					     loading->size, image->sha256, &none, &image->info);
	if (result != CUDA_SUCCESS)
		return result;
	result = image_error_to_cuda(gp_image_open(loading->bytes, loading->size, &view));
	if (result != CUDA_SUCCESS)
		return result;
	result = image_init_kernels(image, view, &target);
	gp_image_destroy(view);
	return result;
}

/* One round trip for all: any later call is processed after them anyway. */
static void
loadings_await(void) GP_LOCKED(loading_lock)
{
	struct gpc_image_loading *loading;

	gpc_stats_wait_start(GP_CALL_gpImageLoad);
	DL_FOREACH(all_loading, loading)
	{
		if (!gpc_request_poll(&loading->request))
			(void)gpc_request_wait_own(&loading->request);
	}
	gpc_stats_wait_stop();
}

static bool
loadings_are_done(void) GP_LOCKED(loading_lock)
{
	struct gpc_image_loading *loading;

	DL_FOREACH(all_loading, loading)
	{
		if (!gpc_request_poll(&loading->request))
			return false;
	}
	return true;
}

CUresult
gpc_image_await(struct gpc_image *image)
{
	struct gpc_image_loading *loading;

	if (__builtin_expect(!__atomic_load_n(&image->loading, __ATOMIC_ACQUIRE), 1))
		return image->loaded;
	(void)pthread_mutex_lock(&loading_lock);
	loading = image->loading;
	if (loading) {
		if (!loadings_are_done())
			loadings_await();
		DL_DELETE(all_loading, loading);
		image->loaded = loading_finish(image);
		__atomic_store_n(&image->loading, NULL, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&loading_lock);
	gpc_image_loading_free(loading);
	return image->loaded;
}

/* Takes ownership of bytes. An image that the daemon has or has preloaded is loaded without
 * waiting. */
static CUresult
image_load(struct gpc_image *image, struct gpc_context *context, const struct gp_image *view,
	   const struct gp_image_target *target, void *bytes, size_t size,
	   const struct gpc_jit_options *options)
{
	CUresult result;

	gp_sha256(bytes, size, image->sha256);
	image->size = size;
	image->plain = !options || options->count == 0;
	if (!image->plain || !gpc_image_preload_load(image, context, view, target, &result)) {
		if (!options)
			return loading_start(image, context, bytes, size);
		result = image_load_and_wait(context, image->handle.id, bytes, size, image->sha256,
					     options, &image->info);
	}
	free(bytes);
	return result == CUDA_SUCCESS ? image_init_kernels(image, view, target) : result;
}

CUresult
gpc_image_load(struct gpc_context *context, const void *source,
	       const struct gpc_jit_options *options, struct gpc_image **image_p)
{
	struct gp_image_target target = device_to_image_target(context->device);
	struct gpc_image *image;
	struct gp_image *view;
	void *bytes;
	size_t size;
	CUresult result = source ? image_flatten(source, &target, &view, &bytes, &size)
				 : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	image = gpc_image_create(context);
	if (image)
		result = image_load(image, context, view, &target, bytes, size, options);
	else
		free(bytes);
	gp_image_destroy(view);
	if (!image)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		*image_p = image;
	else if (image->info)
		gpc_image_unload(image);
	else
		gpc_image_free(image);
	return result;
}

static void *
file_read(const char *path, CUresult *result_p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *data = NULL;
	ssize_t got = 0;
	size_t size = 0;

	*result_p = fd < 0 ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 &&
	    (uint64_t)st.st_size <= GP_IMAGE_SIZE_MAX) {
		/* Trailing zeros terminate PTX text, and make reading the header of a short file
		 * safe. */
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
	*source_p = file_read(path, &result);
	if (result == CUDA_SUCCESS)
		return result;
	free(*source_p);
	return result;
}

/* A library can be loaded in any context of the session. */
static struct gpc_context *
session_get_context(const struct gpc_session *session)
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
		struct gpc_context *context = session_get_context(session);

		if (session == image->device->session || !context ||
		    gpc_image_load(context, source, options, &last->twin) != CUDA_SUCCESS)
			continue;
		last = last->twin;
	}
}
