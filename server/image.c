/* SPDX-License-Identifier: Apache-2.0 */
#include "server/image.h"

#include "gpd_calls.h"
#include "protocol/fatbin.h"
#include "protocol/image_info.h"
#include "server/context.h"
#include "server/driver.h"
#include "server/image_cache.h"
#include "server/image_library.h"
#include "server/image_variables.h"
#include "server/janitor.h"
#include "server/library.h"
#include "server/session.h"
#include "server/wait.h"
#include "server/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

/* Of all images of a session. */
#define IMAGES_SIZE_MAX ((uint64_t)8 << 30)
#define IMAGES_MAX 16384
#define RECEIVE_SIZE ((size_t)1 << 20)
/* How long an allocation waits for images to be unloaded. */
#define UNLOAD_S 2

/* Those that the client has unloaded and the driver has not: their variables are still charged. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	struct gpd_image *images; /* utlist */
} leaving = { .lock = PTHREAD_MUTEX_INITIALIZER, .gone = PTHREAD_COND_INITIALIZER };

/* A variable, on one device. */
struct gpd_global {
	struct gpd_global *next;
	uint64_t address;
	uint64_t size;
	int device;
	uint64_t charged; /* 0: with the image */
};

struct range {
	uint64_t address;
	uint64_t size;
	bool found;
};

static void
look_for(struct gpd_handle *handle, void *arg)
{
	const struct gpd_image *image = (const struct gpd_image *)handle;
	struct range *range = arg;

	for (const struct gpd_global *global = image->globals; global; global = global->next) {
		if (range->address >= global->address &&
		    range->address - global->address <= global->size &&
		    range->size <= global->size - (range->address - global->address))
			range->found = true;
	}
}

bool
gpd_image_owns(struct gpd_session *session, uint64_t address, uint64_t size)
{
	struct range range = { .address = address, .size = size };

	gpd_handle_each(&session->handles, GPD_KIND_IMAGE, look_for, &range);
	return range.found;
}

static void
image_free(struct gpd_image *image)
{
	gpd_blob_unref(image->blob);
	gpd_image_forget_dynamic(image);
	free(image);
}

static void
forget_globals(struct gpd_session *session, struct gpd_image *image)
{
	struct gpd_global *global;

	while ((global = image->globals)) {
		image->globals = global->next;
		gpd_account_free(&session->account, global->device, global->charged);
		free(global);
	}
}

static void
uncharge(struct gpd_session *session, struct gpd_image *image)
{
	if (image->charged)
		gpd_account_free(&session->account, image->charged_device, image->charged);
	image->charged = 0;
	forget_globals(session, image);
}

/* Locked. */
static void
stop_paying(struct gpd_image *image)
{
	LL_DELETE(leaving.images, image);
	uncharge(image->payer, image);
	gpd_account_leave_end(&image->payer->account);
	image->payer = NULL;
	pthread_cond_broadcast(&leaving.gone);
}

static void
unload(void *arg)
{
	struct gpd_image *image = arg;

	if (image->library)
		gpd_library_put(image->library);
	if (image->left)
		gpd_library_put(image->left);
	pthread_mutex_lock(&leaving.lock);
	if (image->payer)
		stop_paying(image);
	pthread_mutex_unlock(&leaving.lock);
	image_free(image);
}

/* Janitor.  What is shared stays loaded. */
static void
unload_quietly(void *arg)
{
	struct gpd_image *image = arg;

	if (image->library && !image->library->shared && !gpd_janitor_seek_quiet())
		gpd_janitor_run(unload_quietly, image);
	else
		unload(image);
}

static void
unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_image *image = arg;

	if (image->charged || image->globals) {
		gpd_account_leave_begin(&session->account);
		pthread_mutex_lock(&leaving.lock);
		image->payer = session;
		LL_PREPEND(leaving.images, image);
		pthread_mutex_unlock(&leaving.lock);
	}
	atomic_fetch_sub(&session->images_leaving, 1);
	gpd_janitor_run(unload_quietly, image);
}

/* Locked. */
static struct gpd_image *
find_leaving(const struct gpd_session *session)
{
	struct gpd_image *image;

	LL_SEARCH_SCALAR(leaving.images, image, payer, session);
	return image;
}

bool
gpd_image_wait_unloaded(struct gpd_session *session)
{
	struct timespec until;
	bool any;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += UNLOAD_S;
	pthread_mutex_lock(&leaving.lock);
	any = find_leaving(session) != NULL;
	while (find_leaving(session) &&
	       pthread_cond_timedwait(&leaving.gone, &leaving.lock, &until) == 0)
		;
	pthread_mutex_unlock(&leaving.lock);
	return any;
}

/* Its name goes with its image: whoever reads it for the log has the lock. */
static void
forget_kernel(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_worker.lock);
	__atomic_store_n(&session->kernel, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&gpd_worker.lock);
}

static void
take_out(struct gpd_session *session, struct gpd_image *image)
{
	forget_kernel(session);
	gpd_handle_remove(&session->handles, &image->handle);
}

CUresult
gpd_gpImageUnload(struct gpd_session *session, const struct gp_args_gpImageUnload *args)
{
	struct gpd_image *image = gpd_image_get(session, args->image);

	if (!image)
		return CUDA_ERROR_INVALID_HANDLE;
	take_out(session, image);
	/* Without a marker nobody can tell when it is free of use: the process ends soon. */
	atomic_fetch_add(&session->images_leaving, 1);
	return gpd_wait_add_all(session, NULL, unused, image);
}

struct forget {
	struct gpd_session *session;
	const struct gpd_context *context;
	struct gpd_image *image;
};

static void
mark_stale(struct gpd_handle *handle, void *arg)
{
	struct gpd_image *image = (struct gpd_image *)handle;
	struct forget *forget = arg;

	if (image->context && image->context != forget->context)
		return;
	image->context = NULL;
	/* Where there is no state, only what was set is forgotten. */
	if (image->library && image->library->shared)
		gpd_image_forget_dynamic(image);
	else
		image->stale = true;
	forget_globals(forget->session, image);
}

void
gpd_image_forget_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct forget forget = { .session = session, .context = context };

	forget_kernel(session);
	gpd_handle_each(&session->handles, GPD_KIND_IMAGE, mark_stale, &forget);
}

static void
pick(struct gpd_handle *handle, void *arg)
{
	((struct forget *)arg)->image = (struct gpd_image *)handle;
}

static struct gpd_image *
next(struct forget *forget)
{
	forget->image = NULL;
	gpd_handle_each(&forget->session->handles, GPD_KIND_IMAGE, pick, forget);
	return forget->image;
}

void
gpd_image_forget_session(struct gpd_session *session)
{
	struct forget forget = { .session = session };

	while (next(&forget)) {
		take_out(session, forget.image);
		uncharge(session, forget.image);
		gpd_janitor_run(unload_quietly, forget.image);
	}
	pthread_mutex_lock(&leaving.lock);
	while ((forget.image = find_leaving(session)))
		stop_paying(forget.image);
	pthread_mutex_unlock(&leaving.lock);
}

static const struct gpd_global *
add_global(struct gpd_session *session, struct gpd_image *image, int device, uint64_t address,
	   uint64_t size, CUresult *result)
{
	struct gpd_global *global = image->globals;
	uint64_t charged = 0;

	while (global && global->address != address)
		global = global->next;
	if (global)
		return global;
	/* What was read off the image may be less than what the driver made of it. */
	image->seen += device == image->charged_device ? size : 0;
	if (!image->charged || device != image->charged_device)
		charged = size;
	else if (image->seen > image->charged)
		charged = image->seen - image->charged < size ? image->seen - image->charged : size;
	*result = gpd_account_allocate(&session->account, device, charged);
	if (*result != CUDA_SUCCESS)
		return NULL;
	global = malloc(sizeof(*global));
	if (!global) {
		gpd_account_free(&session->account, device, charged);
		*result = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	*global = (struct gpd_global){ image->globals, address, size, device, charged };
	image->globals = global;
	return global;
}

/* Who asks for a variable may write it: it has to be the image's own. */
static CUresult
find_global(struct gpd_session *session, struct gpd_image *image, int device, struct gp_bytes text,
	    CUdeviceptr *address_p, size_t *size_p)
{
	char *name = strndup(text.data ? text.data : "", text.size);
	CUresult result;

	if (!name)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_driver.cuLibraryGetGlobal(address_p, size_p, image->library->driver, name);
	if (result == CUDA_SUCCESS && image->library->shared) {
		result = gpd_image_leave_shared(session, image, device);
		if (result == CUDA_SUCCESS)
			result = gpd_driver.cuLibraryGetGlobal(address_p, size_p,
							       image->library->driver, name);
	}
	free(name);
	return result;
}

CUresult
gpd_gpImageGlobal(struct gpd_session *session, const struct gp_args_gpImageGlobal *args,
		  struct gp_reply_gpImageGlobal *reply)
{
	const struct gpd_context *context = gpd_context_get(session, args->context);
	struct gpd_image *image = gpd_image_get(session, args->image);
	int device = context ? context->device : 0;
	CUdeviceptr address;
	size_t size;
	CUresult result;

	if (!image)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_session_enter(session, args->context);
	if (result == CUDA_SUCCESS)
		result = gpd_image_renew(session, image, device);
	if (result == CUDA_SUCCESS)
		result = find_global(session, image, device, args->name, &address, &size);
	if (result != CUDA_SUCCESS)
		return result;
	if (!add_global(session, image, device, address, size, &result))
		return result;
	reply->address = address;
	reply->size = size;
	return CUDA_SUCCESS;
}

/* What a session holds of the worker's memory. */
struct sum {
	uint64_t size;
	unsigned int count;
};

static void
add_up(struct gpd_handle *handle, void *arg)
{
	struct sum *sum = arg;

	sum->size += gpd_blob_size(((struct gpd_image *)handle)->blob);
	sum->count++;
}

static bool
within_limits(struct gpd_session *session, const struct sum *held, uint64_t size)
{
	if (size <= GP_IMAGE_SIZE_MAX && held->size + size <= IMAGES_SIZE_MAX &&
	    held->count < IMAGES_MAX)
		return true;
	gpd_session_log(session, GPD_LOG_WARNING,
			"an image of %" PRIu64 " KiB is refused: it has %u of %" PRIu64
			" KiB already",
			size >> 10, held->count, held->size >> 10);
	return false;
}

/* How much beyond the limit will do, as each session has its least in any case. */
static uint64_t
allowance(const struct gpd_session *session, const struct sum *held, uint64_t size)
{
	return held->size + size <= GPD_CODE_MIN
		       ? gpd_ledger_sessions(session->account.ledger) * GPD_CODE_MIN
		       : 0;
}

static CUresult
refuse_memory(struct gpd_session *session, uint64_t size)
{
	const struct gpd_ledger *ledger = session->account.ledger;

	gpd_session_log(session, GPD_LOG_WARNING,
			"an image of %" PRIu64 " KiB is refused: device code has %" PRIu64
			" of %" PRIu64 " KiB (code-memory)",
			(size + 1023) >> 10, gpd_code_used(&ledger->code) >> 10,
			atomic_load(&ledger->code.max) >> 10);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The hash is made as the bytes arrive, and so is the memory taken: what is only announced is not
 * in the way of others.  `taken`: how much that was, also if it fails. */
static CUresult
receive(struct gpd_session *session, uint8_t *bytes, size_t size, uint64_t more, uint64_t *taken,
	uint8_t *sha256)
{
	EVP_MD_CTX *digest = EVP_MD_CTX_new();
	bool good = digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1;
	CUresult result = good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	*taken = 0;
	for (size_t at = 0; result == CUDA_SUCCESS && at < size; at += RECEIVE_SIZE) {
		size_t part = size - at < RECEIVE_SIZE ? size - at : RECEIVE_SIZE;

		if (!gpd_image_cache_take(part, more)) {
			result = refuse_memory(session, size);
			break;
		}
		*taken += part;
		if (gpd_session_recv_bulk(session, bytes + at, part) ||
		    EVP_DigestUpdate(digest, bytes + at, part) != 1)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS && EVP_DigestFinal_ex(digest, sha256, NULL) != 1)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	EVP_MD_CTX_free(digest);
	return result;
}

static CUresult
blob_receive(struct gpd_session *session, const struct gp_args_gpImageLoad *args, uint64_t more,
	     struct gpd_blob **blob_p)
{
	uint8_t sha256[EVP_MAX_MD_SIZE];
	uint64_t taken;
	CUresult result;
	void *bytes;

	/* Better now than at its end. */
	if (!gpd_image_cache_could_take(args->size, more))
		return refuse_memory(session, args->size);
	bytes = gpd_image_bytes_alloc(args->size);
	if (!bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = receive(session, bytes, args->size, more, &taken, sha256);
	if (result == CUDA_SUCCESS && memcmp(sha256, args->sha256.data, GPD_SHA256_SIZE)) {
		gpd_session_violation(session, "an image does not have the SHA-256 it was sent by");
		result = CUDA_ERROR_INVALID_IMAGE;
	}
	if (result != CUDA_SUCCESS) {
		free(bytes);
		gpd_image_cache_give(taken);
		return result;
	}
	*blob_p = gpd_image_cache_add(sha256, bytes, args->size);
	return *blob_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* NULL with CUDA_SUCCESS: the client has to send it, and there is room for it. */
static CUresult
blob_look_up(struct gpd_session *session, const struct gp_args_gpImageLoad *args, uint64_t more,
	     struct gpd_blob **blob_p)
{
	struct gpd_image_name name = { .size = args->size };
	bool full;

	memcpy(name.sha256, args->sha256.data, sizeof(name.sha256));
	*blob_p = gpd_image_cache_find(&name, more, &full);
	if (*blob_p || (!full && gpd_image_cache_could_take(args->size, more)))
		return CUDA_SUCCESS;
	return refuse_memory(session, args->size);
}

static CUresult
blob_get(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
	 struct gpd_blob **blob_p)
{
	uint64_t bulk = gpd_session_bulk_size(session), more;
	struct sum held = { 0 };

	*blob_p = NULL;
	if (args->sha256.size != GPD_SHA256_SIZE || (bulk && bulk != args->size)) {
		gpd_session_violation(session,
				      "an image of %lu bytes with a tail of %lu and a hash of %zu",
				      args->size, bulk, args->sha256.size);
		return CUDA_ERROR_INVALID_VALUE;
	}
	gpd_handle_each(&session->handles, GPD_KIND_IMAGE, add_up, &held);
	if (!within_limits(session, &held, args->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	more = allowance(session, &held, args->size);
	return (bulk ? blob_receive : blob_look_up)(session, args, more, blob_p);
}

/* Its variables take memory from now on. */
static CUresult
charge(struct gpd_session *session, struct gpd_image *image)
{
	int device = image->context ? image->context->device : 0;
	CUresult result;

	if (!image->uses.variables)
		return CUDA_SUCCESS;
	/* Nobody knows how much it is, and nobody need. */
	if (image->uses.variables >= GPD_VARIABLES_UNKNOWN &&
	    gpd_account_room(&session->account, device).max == GPD_NO_LIMIT)
		return CUDA_SUCCESS;
	result = gpd_account_allocate(&session->account, device, image->uses.variables);
	if (result == CUDA_SUCCESS) {
		image->charged = image->uses.variables;
		image->charged_device = device;
	}
	return result;
}

/* A library that is shared keeps what it says. */
static CUresult
copy_info(const struct gpd_library *library, struct gp_bytes *info_p)
{
	void *copy = malloc(library->info.size ? library->info.size : 1);

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, library->info.data, library->info.size);
	*info_p = (struct gp_bytes){ copy, library->info.size };
	return CUDA_SUCCESS;
}

static CUresult
enter_image(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
	    struct gpd_image *image, struct gp_reply_gpImageLoad *reply)
{
	int device = image->context ? image->context->device : 0;
	CUresult result = charge(session, image);

	if (result == CUDA_SUCCESS)
		result = gpd_library_get(session, image->blob, device, true, args->options,
					 &image->library, &reply->log);
	if (result == CUDA_SUCCESS)
		result = copy_info(image->library, &reply->info);
	if (result == CUDA_SUCCESS)
		result = gpd_session_name(session, GPD_KIND_IMAGE, args->image, &image->handle);
	return result;
}

static CUresult
load(struct gpd_session *session, const struct gp_args_gpImageLoad *args, struct gpd_blob *blob,
     struct gp_reply_gpImageLoad *reply)
{
	struct gpd_image *image = calloc(1, sizeof(*image));
	CUresult result;

	if (!image) {
		gpd_blob_unref(blob);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	image->blob = blob;
	image->context = gpd_context_get(session, args->context);
	image->uses = gpd_blob_uses(blob);
	result = enter_image(session, args, image, reply);
	if (result != CUDA_SUCCESS) {
		uncharge(session, image);
		unload(image);
	}
	return result;
}

CUresult
gpd_gpImageLoad(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
		struct gp_reply_gpImageLoad *reply)
{
	struct gpd_blob *blob;
	CUresult result = blob_get(session, args, &blob);

	if (result == CUDA_SUCCESS && !blob) {
		reply->missing = 1;
		return CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS)
		result = gpd_session_enter(session, args->context);
	if (result != CUDA_SUCCESS) {
		if (session->bulk_left)
			(void)gpd_session_recv_bulk(session, NULL, session->bulk_left);
		gpd_blob_unref(blob);
		return result;
	}
	return load(session, args, blob, reply);
}
