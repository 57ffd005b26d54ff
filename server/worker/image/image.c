/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/image.h"

#include "base/clock.h"
#include "base/lock.h"
#include "gpd_calls.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/code/image_state.h"
#include "server/worker/device/driver.h"
#include "server/worker/image/image_bytes.h"
#include "server/worker/image/image_library.h"
#include "server/worker/image/library.h"
#include "server/worker/image/promise.h"
#include "server/worker/image/unpacking.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/context.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/session/wait.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* How long an allocation waits for images to be unloaded. */
#define UNLOAD_NS UINT64_C(2000000000)

/* Those that the client has unloaded and the driver has not: they still count for the session. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t gone;
	struct gpd_image *images; /* utlist */
} leaving = { .lock = PTHREAD_MUTEX_INITIALIZER };
GP_COND_AT_START(leaving.gone);

/* A variable, on one device. */
struct gpd_global {
	struct gpd_global *next;
	struct gpd_extent extent;
	int device;
	uint64_t charged; /* 0: with the image */
};

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
	gpd_account_free(&session->account, image->charged_device, image->charged);
	image->charged = 0;
	gpd_account_give_code(&session->account, image->code);
	image->code = 0;
	forget_globals(session, image);
}

static void
stop_paying(struct gpd_image *image) GP_LOCKED(leaving.lock)
{
	LL_DELETE(leaving.images, image);
	uncharge(image->payer, image);
	gpd_ledger_leave_end(image->payer->account.line, image->leave);
	image->payer = NULL;
	pthread_cond_broadcast(&leaving.gone);
}

/* The driver does not have it any more, or has it for others. */
static void
gone(void *arg)
{
	struct gpd_image *image = arg;

	pthread_mutex_lock(&leaving.lock);
	if (image->payer)
		stop_paying(image);
	pthread_mutex_unlock(&leaving.lock);
	image_free(image);
}

/* Its session has done with it.  What is shared stays loaded; for the rest it may be long until
 * there is a quiet moment. */
static void
leave(struct gpd_image *image)
{
	if (image->left)
		gpd_library_put(image->left);
	if (image->library && !image->library->shared) {
		gpd_library_unload_later(image->library, gone, image);
		return;
	}
	if (image->library)
		gpd_library_put(image->library);
	gone(image);
}

static void
image_end(struct gpd_session *session, struct gpd_image *image)
{
	uncharge(session, image);
	leave(image);
}

static void
unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_image *image = arg;

	image->leave = gpd_ledger_leave_begin(session->account.line);
	pthread_mutex_lock(&leaving.lock);
	image->payer = session;
	LL_PREPEND(leaving.images, image);
	pthread_mutex_unlock(&leaving.lock);
	atomic_fetch_sub(&session->images_leaving, 1);
	leave(image);
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
	bool any = atomic_load(&session->images_leaving) != 0;

	while (atomic_load(&session->images_leaving) && !gpd_wait_none(session))
		gpd_wait_oldest(session);
	until = gp_now_ns() + UNLOAD_NS;
	pthread_mutex_lock(&leaving.lock);
	any = any || find_leaving(session);
	while (find_leaving(session) && gp_cond_wait_until(&leaving.gone, &leaving.lock, until))
		;
	pthread_mutex_unlock(&leaving.lock);
	return any;
}

/* Its name goes with its image: whoever reads it for the log has the lock. */
static void
forget_kernel(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	__atomic_store_n(&session->kernel, NULL, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

/* No copy may touch them any more. */
static void
close_globals(struct gpd_session *session, struct gpd_image *image)
{
	for (struct gpd_global *global = image->globals; global; global = global->next)
		gpd_memory_close_extent(session, &global->extent);
}

static CUresult
unload(struct gpd_session *session, struct gpd_image *image)
{
	forget_kernel(session);
	session->kernels_changed++;
	close_globals(session, image);
	gpd_handle_remove(&session->handles, &image->handle);
	/* Without a marker nobody can tell when it is free of use: the process ends soon. */
	atomic_fetch_add(&session->images_leaving, 1);
	return gpd_wait_add_all(session, NULL, unused, image);
}

CUresult
gpd_gpImageUnload(struct gpd_session *session, const struct gp_args_gpImageUnload *args)
{
	struct gpd_image *image = gpd_image_get(session, args->image);

	return image ? unload(session, image) : CUDA_ERROR_INVALID_HANDLE;
}

/* What stays charged, so that the next image that uses it does not fail.  A shared library stays
 * with the driver; of any other one that image gets a new one, while the driver may have both. */
static uint64_t
move_retired_code(struct gpd_session *session, struct gpd_image *image)
{
	const struct gpd_account *account = &session->account;
	const uint64_t size = gpd_blob_name(image->blob)->size;
	uint64_t more = image->library ? image->library->driver_size : 0;

	image->code -= size;
	/* Of another device it may be more. */
	more = more < image->code ? more : image->code;
	if (image->library && image->library->shared) {
		image->code -= more;
		return size + more;
	}
	return gpd_ledger_take(account->ledger, account->line, GPD_LEDGER_CODE, more) ? size + more
										      : size;
}

CUresult
gpd_gpImageRetire(struct gpd_session *session, const struct gp_args_gpImageRetire *args)
{
	struct gpd_image *image = gpd_image_get(session, args->image);

	if (!image)
		return CUDA_ERROR_INVALID_HANDLE;
	if (gpd_account_may_use(&session->account, args->device))
		gpd_promise_retire(session, image->blob, args->device,
				   move_retired_code(session, image));
	return unload(session, image);
}

CUresult
gpd_gpImageForget(struct gpd_session *session, const struct gp_args_gpImageForget *args)
{
	gpd_promise_forget_retired(session);
	return CUDA_SUCCESS;
}

static void
mark_stale(struct gpd_session *session, struct gpd_image *image)
{
	image->context = NULL;
	session->kernels_changed++;
	/* Where there is no state, only what was set is forgotten. */
	if (image->library && image->library->shared)
		gpd_image_forget_dynamic(image);
	else
		image->stale = true;
	close_globals(session, image);
	forget_globals(session, image);
}

void
gpd_image_forget_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct gpd_image *image;
	uint32_t at = 0;

	forget_kernel(session);
	while ((image = gpd_handle_next(&session->handles, GPD_KIND_IMAGE, &at))) {
		if (!image->context || image->context == context)
			mark_stale(session, image);
	}
}

void
gpd_image_forget_session(struct gpd_session *session)
{
	struct gpd_image *image;
	uint32_t at = 0;

	forget_kernel(session);
	while ((image = gpd_handle_next(&session->handles, GPD_KIND_IMAGE, &at))) {
		close_globals(session, image);
		gpd_handle_remove(&session->handles, &image->handle);
		image_end(session, image);
	}
	pthread_mutex_lock(&leaving.lock);
	while ((image = find_leaving(session)))
		stop_paying(image);
	pthread_mutex_unlock(&leaving.lock);
}

static CUresult
add_global(struct gpd_session *session, struct gpd_image *image, int device, uint64_t address,
	   uint64_t size)
{
	struct gpd_global *global = image->globals;
	uint64_t charged = 0;
	CUresult result;

	while (global && global->extent.address != address)
		global = global->next;
	if (global)
		return CUDA_SUCCESS;
	/* What was read off the image may be less than what the driver made of it. */
	image->seen += device == image->charged_device ? size : 0;
	if (!image->charged || device != image->charged_device)
		charged = size;
	else if (image->seen > image->charged)
		charged = image->seen - image->charged < size ? image->seen - image->charged : size;
	result = gpd_account_allocate(&session->account, device, charged);
	if (result != CUDA_SUCCESS)
		return result;
	global = malloc(sizeof(*global));
	if (!global) {
		gpd_account_free(&session->account, device, charged);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*global = (struct gpd_global){ .next = image->globals,
				       .extent = { .address = address, .size = size },
				       .device = device,
				       .charged = charged };
	image->globals = global;
	gpd_memory_open_extent(session, &global->extent);
	return CUDA_SUCCESS;
}

/* Who asks for a variable may write it: it has to be the image's own. */
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
global(struct gpd_session *session, const struct gp_args_gpImageGlobal *args, bool managed,
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
		result = gpd_image_renew(session, image, device);
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
	return global(session, args, false, reply);
}

CUresult
gpd_gpImageManaged(struct gpd_session *session, const struct gp_args_gpImageManaged *args,
		   struct gp_reply_gpImageManaged *reply)
{
	const struct gp_args_gpImageGlobal same = { args->context, args->image, args->name };
	struct gp_reply_gpImageGlobal found;
	CUresult result = global(session, &same, true, &found);

	if (result == CUDA_SUCCESS) {
		reply->address = found.address;
		reply->size = found.size;
	}
	return result;
}

static int
device_of(const struct gpd_image *image)
{
	return image->context ? image->context->device : 0;
}

static CUresult
charge_variables(struct gpd_session *session, struct gpd_image *image)
{
	int device = device_of(image);
	CUresult result;

	if (!image->uses.variables)
		return CUDA_SUCCESS;
	/* Nobody knows how much it is, and nobody need. */
	if (image->uses.variables >= GPD_VARIABLES_UNKNOWN &&
	    gpd_ledger_room(session->account.ledger, session->account.line, device, 0).max ==
		    GPD_NO_LIMIT)
		return CUDA_SUCCESS;
	result = gpd_account_allocate(&session->account, device, image->uses.variables);
	if (result == CUDA_SUCCESS) {
		image->charged = image->uses.variables;
		image->charged_device = device;
	}
	return result;
}

/* What the driver makes of its code, and its variables, take memory from now on. */
static CUresult
charge(struct gpd_session *session, struct gpd_image *image)
{
	const uint64_t all = gpd_blob_name(image->blob)->size +
			     gpd_image_driver_size(image->blob, device_of(image));
	CUresult result = CUDA_SUCCESS;

	if (image->code < all)
		result = gpd_unpacking_charge(session, all - image->code);
	if (result != CUDA_SUCCESS)
		return result;
	image->code = all;
	return charge_variables(session, image);
}

static struct gpd_image *
image_new(struct gpd_blob *blob, struct gpd_context *context, uint64_t code)
{
	struct gpd_image *image = calloc(1, sizeof(*image));

	if (!image)
		return NULL;
	image->blob = blob;
	image->context = context;
	image->code = code;
	image->uses = gpd_blob_uses(blob);
	return image;
}

/* The device is current, and all is charged.  Without success it has ended. */
static CUresult
enter_image(struct gpd_session *session, struct gpd_image *image, uint32_t id,
	    struct gp_bytes options, struct gp_bytes *info_p, struct gp_bytes *log_p)
{
	int device = device_of(image);
	CUresult result = gpd_library_get(session, image->blob, device, true, options,
					  &image->library, log_p);

	if (result == CUDA_SUCCESS && !gpd_library_copy(image->library->info, info_p))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = gpd_session_name(session, GPD_KIND_IMAGE, id, &image->handle);
	if (result != CUDA_SUCCESS)
		image_end(session, image);
	else if (!options.size && !image->library->unsupported)
		gpd_promise_remember(session, image->blob, device, image->library->info);
	return result;
}

/* Takes over a reference to the blob, and the code-memory that is charged for it; what the load
 * would tell is for none, or for info_p and log_p. */
static CUresult
load(struct gpd_session *session, uint32_t context, uint32_t id, struct gpd_blob *blob,
     uint64_t code, struct gp_bytes options, struct gp_bytes *info_p, struct gp_bytes *log_p)
{
	struct gpd_image *image = image_new(blob, gpd_context_get(session, context), code);
	CUresult result;

	if (!image) {
		gpd_account_give_code(&session->account, code);
		gpd_blob_unref(blob);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = gpd_context_enter(session, context);
	if (result == CUDA_SUCCESS)
		result = charge(session, image);
	if (result == CUDA_SUCCESS)
		return enter_image(session, image, id, options, info_p, log_p);
	image_end(session, image);
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
		return load(session, args->context, args->image, blob, args->size, args->options,
			    &reply->info, &reply->log);
	if (session->bulk_left)
		(void)gpd_session_recv_bulk(session, NULL, session->bulk_left);
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
	size = gpd_blob_name(like->blob)->size;
	result = gpd_image_take_memory(session, size);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_blob_ref(like->blob);
	return load(session, args->context, args->image, like->blob, size, (struct gp_bytes){ 0 },
		    NULL, NULL);
}

CUresult
gpd_gpImageUse(struct gpd_session *session, const struct gp_args_gpImageUse *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);
	CUresult result = gpd_context_enter(session, args->context);
	struct gpd_promise *promise;
	struct gpd_image *image;
	struct gpd_blob *blob;
	uint64_t code;

	if (result != CUDA_SUCCESS)
		return result;
	promise =
		gpd_promise_keep(session, args->sha256, gpd_context_device(session, args->context));
	if (!promise)
		return CUDA_ERROR_INVALID_VALUE;
	if (promise->retired) {
		blob = promise->blob;
		code = promise->code;
		free(promise);
		return load(session, args->context, args->image, blob, code, (struct gp_bytes){ 0 },
			    NULL, NULL);
	}
	image = image_new(promise->blob, context, promise->code);
	if (!image) {
		gpd_promise_release(session, promise);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	image->charged = promise->variables;
	image->charged_device = promise->device;
	free(promise);
	return enter_image(session, image, args->image, (struct gp_bytes){ 0 }, NULL, NULL);
}
