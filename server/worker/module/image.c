/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/image.h"

#include "base/clock.h"
#include "base/lock.h"
#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/device/driver.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/image_cache/image_state.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image_bytes.h"
#include "server/worker/module/image_library.h"
#include "server/worker/module/image_preload.h"
#include "server/worker/module/library.h"
#include "server/worker/module/unpacking.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/stream/responder.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* How long an allocation waits for images to be unloaded. */
#define UNLOAD_NS UINT64_C(2000000000)

/* Images that the client has unloaded and the driver has not yet: they are still charged to the
 * session. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	struct gpd_image *images; /* utlist */
} leaving = { .lock = PTHREAD_MUTEX_INITIALIZER };
GP_COND_CONSTRUCTOR(leaving.gone);

/* A variable on one device. */
struct gpd_global {
	struct gpd_global *next;
	struct gpd_extent extent;
	int device;
	uint64_t charged; /* 0: charged with the image */
};

static void
image_free(struct gpd_image *image)
{
	gpd_blob_unref(image->blob);
	gpd_image_reset_dynamic(image);
	free(image);
}

static void
globals_destroy(struct gpd_session *session, struct gpd_image *image)
{
	struct gpd_global *image_global;

	while ((image_global = image->globals)) {
		image->globals = image_global->next;
		gpd_account_free(&session->account, image_global->device, image_global->charged);
		free(image_global);
	}
}

static void
image_uncharge(struct gpd_session *session, struct gpd_image *image)
{
	gpd_account_free(&session->account, image->charged_device, image->charged);
	image->charged = 0;
	gpd_account_uncharge_code(&session->account, image->code);
	image->code = 0;
	globals_destroy(session, image);
}

static void
image_stop_charging(struct gpd_image *image) GP_LOCKED(leaving.lock)
{
	LL_DELETE(leaving.images, image);
	image_uncharge(image->payer, image);
	gpd_ledger_free_end(image->payer->account.entry, image->free_epoch);
	image->payer = NULL;
	pthread_cond_broadcast(&leaving.gone);
}

/* The driver has unloaded it, or keeps it for other images. */
static void
image_unloaded(void *arg)
{
	struct gpd_image *image = arg;

	pthread_mutex_lock(&leaving.lock);
	if (image->payer)
		image_stop_charging(image);
	pthread_mutex_unlock(&leaving.lock);
	image_free(image);
}

/* Releases the image's libraries. A shared one stays loaded; another one may have to wait long for
 * a nearly idle device. */
static void
image_leave(struct gpd_image *image)
{
	if (image->previous_library)
		gpd_library_put(image->previous_library);
	if (image->library && !image->library->shared) {
		gpd_library_unload_later(image->library, image_unloaded, image);
		return;
	}
	if (image->library)
		gpd_library_put(image->library);
	image_unloaded(image);
}

static void
image_destroy(struct gpd_session *session, struct gpd_image *image)
{
	image_uncharge(session, image);
	image_leave(image);
}

static void
image_unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_image *image = arg;

	gpd_asserting_code_remove(session, &image->asserting);
	image->free_epoch = gpd_ledger_free_begin(session->account.entry);
	pthread_mutex_lock(&leaving.lock);
	image->payer = session;
	LL_PREPEND(leaving.images, image);
	pthread_mutex_unlock(&leaving.lock);
	atomic_fetch_sub(&session->modules->images_leaving, 1);
	image_leave(image);
}

static struct gpd_image *
find_leaving(const struct gpd_session *session) GP_LOCKED(leaving.lock)
{
	struct gpd_image *image;

	LL_SEARCH_SCALAR(leaving.images, image, payer, session);
	return image;
}

bool
gpd_image_wait_unloaded(struct gpd_session *session)
{
	uint64_t until;
	bool any = atomic_load(&session->modules->images_leaving) != 0;

	while (atomic_load(&session->modules->images_leaving) && !gpd_wait_is_empty(session))
		gpd_wait_any(session);
	until = gp_now_ns() + UNLOAD_NS;
	pthread_mutex_lock(&leaving.lock);
	any = any || find_leaving(session);
	while (find_leaving(session) && gp_cond_wait_until(&leaving.gone, &leaving.lock, until))
		;
	pthread_mutex_unlock(&leaving.lock);
	return any;
}

/* The name belongs to the image; a thread that logs it holds the lock. */
static void
session_clear_kernel(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	__atomic_store_n(&session->progress.kernel, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

/* Later copies must not access the variables. */
static void
close_globals(struct gpd_session *session, struct gpd_image *image)
{
	for (struct gpd_global *image_global = image->globals; image_global;
	     image_global = image_global->next)
		gpd_memory_close_extent(session, &image_global->extent);
}

static CUresult
image_unload_later(struct gpd_session *session, struct gpd_image *image)
{
	session_clear_kernel(session);
	session->modules->kernels_changed++;
	close_globals(session, image);
	gpd_handle_remove(&session->handles, &image->handle);
	/* If this fails, the end of its use cannot be detected; but then the process ends soon. */
	atomic_fetch_add(&session->modules->images_leaving, 1);
	return gpd_wait_add_all(session, NULL, image_unused, image);
}

CUresult
gpd_gpImageUnload(struct gpd_session *session, const struct gp_args_gpImageUnload *args)
{
	struct gpd_image *image = gpd_image_get(session, args->image);

	return image ? image_unload_later(session, image) : CUDA_ERROR_INVALID_HANDLE;
}

/* Returns the charge that moves to the preload, so that the next load of the image does not fail. A
 * shared library stays in the driver; otherwise the next image gets a new library, while the driver
 * may have both. */
static uint64_t
move_retired_code(struct gpd_session *session, struct gpd_image *image)
{
	const struct gpd_account *account = &session->account;
	const uint64_t size = image->blob->key.size;
	uint64_t more = image->library ? image->library->driver_size : 0;

	image->code -= size;
	/* The driver size may be larger on another device. */
	more = more < image->code ? more : image->code;
	if (image->library && image->library->shared) {
		image->code -= more;
		return size + more;
	}
	return gpd_ledger_charge(account->ledger, account->entry, GPD_LEDGER_CODE, more)
		       ? size + more
		       : size;
}

CUresult
gpd_gpImageRetire(struct gpd_session *session, const struct gp_args_gpImageRetire *args)
{
	struct gpd_image *image = gpd_image_get(session, args->image);

	if (!image)
		return CUDA_ERROR_INVALID_HANDLE;
	if (gpd_account_may_use(&session->account, args->device))
		gpd_preload_retire(session, image->blob, args->device,
				   move_retired_code(session, image));
	return image_unload_later(session, image);
}

CUresult
gpd_gpImageForget(struct gpd_session *session, const struct gp_args_gpImageForget *args)
{
	gpd_preload_drop_retired(session);
	return CUDA_SUCCESS;
}

static void
mark_stale(struct gpd_session *session, struct gpd_image *image)
{
	image->context = NULL;
	session->modules->kernels_changed++;
	/* Without state, only the session's settings are reset. */
	if (image->library && image->library->shared)
		gpd_image_reset_dynamic(image);
	else
		image->stale = true;
	close_globals(session, image);
	globals_destroy(session, image);
}

void
gpd_image_invalidate_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct gpd_image *image;

	session_clear_kernel(session);
	for (uint32_t at = 0; (image = gpd_handle_next(&session->handles, GPD_KIND_IMAGE, &at));) {
		if (!image->context || image->context == context)
			mark_stale(session, image);
	}
}

void
gpd_image_destroy_all(struct gpd_session *session)
{
	struct gpd_image *image;

	session_clear_kernel(session);
	for (uint32_t at = 0; (image = gpd_handle_next(&session->handles, GPD_KIND_IMAGE, &at));) {
		close_globals(session, image);
		gpd_handle_remove(&session->handles, &image->handle);
		gpd_asserting_code_remove(session, &image->asserting);
		image_destroy(session, image);
	}
	pthread_mutex_lock(&leaving.lock);
	while ((image = find_leaving(session)))
		image_stop_charging(image);
	pthread_mutex_unlock(&leaving.lock);
}

static CUresult
add_global(struct gpd_session *session, struct gpd_image *image, int device, uint64_t address,
	   uint64_t size)
{
	struct gpd_global *image_global = image->globals;
	uint64_t charged = 0;
	CUresult result;

	while (image_global && image_global->extent.address != address)
		image_global = image_global->next;
	if (image_global)
		return CUDA_SUCCESS;
	/* The scan of the image may have found less than the driver allocated. */
	image->looked_up_bytes += device == image->charged_device ? size : 0;
	if (!image->charged || device != image->charged_device)
		charged = size;
	else if (image->looked_up_bytes > image->charged)
		charged = image->looked_up_bytes - image->charged < size
				  ? image->looked_up_bytes - image->charged
				  : size;
	result = gpd_account_allocate(&session->account, device, charged);
	if (result != CUDA_SUCCESS)
		return result;
	image_global = malloc(sizeof(*image_global));
	if (!image_global) {
		gpd_account_free(&session->account, device, charged);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*image_global = (struct gpd_global){ .next = image->globals,
					     .extent = { .address = address, .size = size },
					     .device = device,
					     .charged = charged };
	image->globals = image_global;
	gpd_memory_open_extent(session, &image_global->extent);
	return CUDA_SUCCESS;
}

/* A client that looks up a variable may write it, so the image needs a library of its own. */
static CUresult
find_global(struct gpd_session *session, struct gpd_image *image, int device, struct gp_bytes text,
	    bool managed, CUdeviceptr *address_p, size_t *size_p)
{
	char *name = strndup(text.data ? text.data : "", text.size);
	CUresult result;

	if (!name)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_library_global(image->library, name, managed, address_p, size_p);
	if (result == CUDA_SUCCESS)
		result = gpd_image_unshare(session, image, device);
	if (result == CUDA_SUCCESS)
		result = gpd_library_global(image->library, name, managed, address_p, size_p);
	free(name);
	return result;
}

static CUresult
image_global(struct gpd_session *session, const struct gp_args_gpImageGlobal *args, bool managed,
	     struct gp_reply_gpImageGlobal *reply)
{
	struct gpd_image *image = gpd_image_get(session, args->image);
	int device = gpd_context_device(session, args->context);
	CUdeviceptr address;
	size_t size;
	CUresult result;

	if (!image)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_context_enter(session, args->context);
	if (result == CUDA_SUCCESS)
		result = gpd_image_refresh(session, image, device);
	if (result == CUDA_SUCCESS)
		result = find_global(session, image, device, args->name, managed, &address, &size);
	if (result == CUDA_SUCCESS)
		result = add_global(session, image, device, address, size);
	if (result != CUDA_SUCCESS)
		return result;
	reply->address = address;
	reply->size = size;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpImageGlobal(struct gpd_session *session, const struct gp_args_gpImageGlobal *args,
		  struct gp_reply_gpImageGlobal *reply)
{
	return image_global(session, args, false, reply);
}

CUresult
gpd_gpImageManaged(struct gpd_session *session, const struct gp_args_gpImageManaged *args,
		   struct gp_reply_gpImageManaged *reply)
{
	const struct gp_args_gpImageGlobal same = { args->context, args->image, args->name };
	struct gp_reply_gpImageGlobal found;
	CUresult result = image_global(session, &same, true, &found);

	if (result == CUDA_SUCCESS) {
		reply->address = found.address;
		reply->size = found.size;
	}
	return result;
}

static int
image_get_device(const struct gpd_image *image)
{
	return image->context ? image->context->device : 0;
}

static CUresult
charge_variables(struct gpd_session *session, struct gpd_image *image)
{
	int device = image_get_device(image);
	CUresult result;

	if (!image->uses.variables)
		return CUDA_SUCCESS;
	/* The size is unknown, and without a limit it does not matter. */
	if (image->uses.variables >= GPD_VARIABLES_UNKNOWN &&
	    gpd_ledger_headroom(session->account.ledger, session->account.entry, device, 0).max ==
		    GPD_NO_LIMIT)
		return CUDA_SUCCESS;
	result = gpd_account_allocate(&session->account, device, image->uses.variables);
	if (result == CUDA_SUCCESS) {
		image->charged = image->uses.variables;
		image->charged_device = device;
	}
	return result;
}

/* Charges the driver's memory for the code and the variables. */
static CUresult
image_charge(struct gpd_session *session, struct gpd_image *image)
{
	const uint64_t all =
		image->blob->key.size + gpd_image_driver_size(image->blob, image_get_device(image));
	CUresult result = CUDA_SUCCESS;

	if (image->code < all)
		result = gpd_unpacking_charge(session, all - image->code);
	if (result != CUDA_SUCCESS)
		return result;
	image->code = all;
	return charge_variables(session, image);
}

static struct gpd_image *
image_create(struct gpd_blob *blob, struct gpd_context *context, uint64_t code)
{
	struct gpd_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->blob = blob;
	image->context = context;
	image->code = code;
	image->uses = blob->uses;
	return image;
}

/* The device must be current and everything charged. On failure the image is destroyed. */
static CUresult
image_add(struct gpd_session *session, struct gpd_image *image, uint32_t id,
	  struct gp_bytes options, struct gp_bytes *info_p, struct gp_bytes *log_p)
{
	int device = image_get_device(image);
	CUresult result = gpd_library_get(session, image->blob, device, true, options,
					  &image->library, log_p);

	if (result == CUDA_SUCCESS && !gpd_bytes_copy(image->library->info, info_p))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = gpd_session_add_handle(session, GPD_KIND_IMAGE, id, &image->handle);
	if (result == CUDA_SUCCESS && image->uses.asserts)
		gpd_asserting_code_add(session, &image->asserting, image->blob->image);
	if (result != CUDA_SUCCESS)
		image_destroy(session, image);
	else if (!options.size && !image->library->unsupported)
		gpd_preload_learn(session, image->blob, device, image->library->info);
	return result;
}

/* Consumes a reference to the blob and its charged code-memory. info_p and log_p may be NULL. */
static CUresult
image_load(struct gpd_session *session, uint32_t context, uint32_t id, struct gpd_blob *blob,
	   uint64_t code, struct gp_bytes options, struct gp_bytes *info_p, struct gp_bytes *log_p)
{
	struct gpd_image *image = image_create(blob, gpd_context_get(session, context), code);
	CUresult result;

	if (!image) {
		gpd_account_uncharge_code(&session->account, code);
		gpd_blob_unref(blob);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = gpd_context_enter(session, context);
	if (result == CUDA_SUCCESS)
		result = image_charge(session, image);
	if (result == CUDA_SUCCESS)
		return image_add(session, image, id, options, info_p, log_p);
	image_destroy(session, image);
	return result;
}

CUresult
gpd_gpImageLoad(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
		struct gp_reply_gpImageLoad *reply)
{
	struct gpd_blob *blob;
	CUresult result = gpd_image_bytes(session, args, &blob);

	if (result == CUDA_SUCCESS && !blob) {
		reply->missing = 1;
		return CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS)
		return image_load(session, args->context, args->image, blob, args->size,
				  args->options, &reply->info, &reply->log);
	if (session->current.bulk_left)
		(void)gpd_session_recv_bulk(session, NULL, session->current.bulk_left);
	return result;
}

CUresult
gpd_gpImageAgain(struct gpd_session *session, const struct gp_args_gpImageAgain *args)
{
	const struct gpd_image *like = gpd_image_get(session, args->like);
	CUresult result;
	uint64_t size;

	if (!like)
		return CUDA_ERROR_INVALID_HANDLE;
	size = like->blob->key.size;
	result = gpd_image_charge_bytes(session, size);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_blob_ref(like->blob);
	return image_load(session, args->context, args->image, like->blob, size,
			  (struct gp_bytes){ 0 }, NULL, NULL);
}

CUresult
gpd_gpImageUse(struct gpd_session *session, const struct gp_args_gpImageUse *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);
	CUresult result = gpd_context_enter(session, args->context);
	struct gpd_preload *preload;
	struct gpd_image *image;
	struct gpd_blob *blob;
	uint64_t code;

	if (result != CUDA_SUCCESS)
		return result;
	preload =
		gpd_preload_pop(session, args->sha256, gpd_context_device(session, args->context));
	if (!preload)
		return CUDA_ERROR_INVALID_VALUE;
	if (preload->retired) {
		blob = preload->blob;
		code = preload->code;
		free(preload);
		return image_load(session, args->context, args->image, blob, code,
				  (struct gp_bytes){ 0 }, NULL, NULL);
	}
	image = image_create(preload->blob, context, preload->code);
	if (!image) {
		gpd_preload_release(session, preload);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	image->charged = preload->variables;
	image->charged_device = preload->device;
	free(preload);
	return image_add(session, image, args->image, (struct gp_bytes){ 0 }, NULL, NULL);
}
