/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/image_preload.h"

#include "base/lock.h"
#include "base/sha256.h"
#include "client/context/device.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "image/image_list.h"
#include "image/image_variables.h"
#include "protocol/image_info.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Per Welcome; a daemon sends fewer. */
#define IMAGES_MAX 256
/* The daemon may have no memory for more variables than this, which the program must learn when it
 * loads the image. */
#define VARIABLES_MAX ((uint64_t)64 << 10)

struct known {
	struct known *next;
	const struct gpc_session *session;
	int device; /* ordinal in the daemon */
	uint8_t sha256[GPC_SHA256_SIZE];
	struct gp_image_info *info; /* NULL: only its digest is known */
	uint8_t digest[GP_SHA256_SIZE];
	bool retired;  /* this process has loaded and unloaded it ... */
	uint64_t size; /* ... and it has this size */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known *images GP_GUARDED_BY(lock);     /* utlist, newest first */
static struct gpc_image *loaded GP_GUARDED_BY(lock); /* utlist */

static bool
known_parse_info(struct known *known, const Gpupool__KnownImage *image)
{
	if (image->info.len)
		return gp_image_info_decode(&known->info, (struct gp_bytes){ image->info.data,
									     image->info.len }) ==
		       0;
	if (image->digest.len != sizeof(known->digest))
		return false;
	memcpy(known->digest, image->digest.data, sizeof(known->digest));
	return true;
}

static void
known_add(const struct gpc_session *session, const Gpupool__KnownImage *image)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known || image->sha256.len != sizeof(known->sha256) ||
	    !known_parse_info(known, image)) {
		free(known);
		return;
	}
	known->session = session;
	known->device = image->device;
	memcpy(known->sha256, image->sha256.data, sizeof(known->sha256));
	(void)pthread_mutex_lock(&lock);
	LL_PREPEND(images, known);
	(void)pthread_mutex_unlock(&lock);
}

void
gpc_image_preload_parse(const struct gpc_session *session, const Gpupool__Welcome *welcome)
{
	Gpupool__KnownImages *all = gpupool__known_images__unpack(NULL, welcome->known_images.len,
								  welcome->known_images.data);

	for (size_t i = 0; all && i < all->n_images && i < IMAGES_MAX; i++)
		known_add(session, all->images[i]);
	if (all)
		gpupool__known_images__free_unpacked(all, NULL);
}

/* Derives the information that the daemon would send from the image itself. It is valid if its
 * digest is that of the daemon. */
static bool
known_derive_info(struct known *known, const struct gp_image *view,
		  const struct gp_image_target *target)
{
	uint8_t digest[GP_SHA256_SIZE];
	void *data;
	size_t size;
	bool same;

	if (gp_image_list(view, target, &known->info))
		return false;
	same = gp_image_info_encode(known->info, &data, &size) == 0;
	if (same) {
		gp_sha256(data, size, digest);
		same = memcmp(digest, known->digest, sizeof(digest)) == 0;
		free(data);
	}
	if (!same)
		gp_image_info_destroy(known->info);
	return same;
}

static void
known_free(struct known *known)
{
	gp_image_info_destroy(known->info);
	free(known);
}

/* Returns whether the call can be posted instead of waited for. While host functions are pending,
 * the daemon may defer the load until after the unloading of an image whose ID it reuses, but does
 * not defer launches in the same way. Waiting for the reply ensures that no launch is sent before
 * it. */
static bool
call_keeps_order(const struct gpc_device *device, unsigned int call)
{
	return gpc_facts_have_call(gpc_session_facts(device->session), call) &&
	       !gpc_session_awaits_host(device->session);
}

static struct known *
known_find(const struct gpc_device *device, const uint8_t sha256[GPC_SHA256_SIZE]) GP_LOCKED(lock)
{
	struct known *known;

	LL_FOREACH(images, known)
	{
		if (known->session == device->session && known->device == device->remote &&
		    memcmp(known->sha256, sha256, sizeof(known->sha256)) == 0)
			return known;
	}
	return NULL;
}

static bool
known_load(struct gpc_image *image, struct gpc_context *context, const struct gp_image *view,
	   const struct gp_image_target *target, CUresult *result_p) GP_LOCKED(lock)
{
	const struct gp_args_gpImageUse args = {
		.context = context->handle.id,
		.image = image->handle.id,
		.sha256 = { image->sha256, GPC_SHA256_SIZE },
	};
	struct known *known = known_find(image->device, image->sha256);

	if (!known || !call_keeps_order(image->device, GP_CALL_gpImageUse))
		return false;
	LL_DELETE(images, known);
	if (!known->info && !known_derive_info(known, view, target)) {
		free(known);
		return false;
	}
	image->info = known->info;
	free(known);
	*result_p = gpc_post_gpImageUse(context, &args);
	return true;
}

/* Restores the state that the kernels had when the image was loaded. */
static void
info_reset(struct gp_image_info *info, const struct gpc_image_setting *settings)
{
	const struct gpc_image_setting *setting;

	for (uint32_t i = 0; i < info->kernel_count; i++) {
		info->kernels[i].absent = false;
		info->kernels[i].varies = 0;
	}
	LL_FOREACH(settings, setting)
	{
		struct gp_kernel_info *kernel = &info->kernels[setting->kernel];

		kernel->attributes[setting->attribute] = setting->value;
		kernel->attributes_known &= ~(1u << setting->attribute);
		kernel->attributes_known |= (uint32_t)setting->known << setting->attribute;
	}
}

/* Returns NULL if out of memory. */
static struct gp_image_info *
image_copy_info(struct gpc_image *image)
{
	struct gp_image_info *info = NULL;
	void *data;
	size_t size;

	(void)pthread_mutex_lock(&image->lock);
	if (gp_image_info_encode(image->info, &data, &size) == 0) {
		if (gp_image_info_decode(&info, (struct gp_bytes){ data, size }) == 0)
			info_reset(info, image->settings);
		else
			info = NULL;
		free(data);
	}
	(void)pthread_mutex_unlock(&image->lock);
	return info;
}

static struct gpc_image *
image_find_loaded(const struct gpc_image *image) GP_LOCKED(lock)
{
	struct gpc_image *other;

	DL_FOREACH(loaded, other)
	{
		if (other->device == image->device &&
		    memcmp(other->sha256, image->sha256, sizeof(other->sha256)) == 0)
			return other;
	}
	return NULL;
}

static bool
image_load_again(struct gpc_image *image, struct gpc_context *context, CUresult *result_p)
	GP_LOCKED(lock)
{
	struct gp_args_gpImageAgain args = { .context = context->handle.id,
					     .image = image->handle.id };
	struct gpc_image *like = image_find_loaded(image);

	if (!like || !call_keeps_order(image->device, GP_CALL_gpImageAgain))
		return false;
	image->info = image_copy_info(like);
	if (!image->info)
		return false;
	args.like = like->handle.id;
	*result_p = gpc_post_gpImageAgain(context, &args);
	return true;
}

bool
gpc_image_preload_load(struct gpc_image *image, struct gpc_context *context,
		       const struct gp_image *view, const struct gp_image_target *target,
		       CUresult *result_p)
{
	bool known;

	/* Held while posting: the daemon must process the calls in the order of this list. */
	(void)pthread_mutex_lock(&lock);
	known = known_load(image, context, view, target, result_p) ||
		image_load_again(image, context, result_p);
	(void)pthread_mutex_unlock(&lock);
	return known;
}

void
gpc_image_preload_add(struct gpc_image *image)
{
	if (!image->plain || gp_image_variables_get_total(image->variables) > VARIABLES_MAX)
		return;
	(void)pthread_mutex_lock(&lock);
	DL_APPEND(loaded, image);
	image->listed = true;
	(void)pthread_mutex_unlock(&lock);
}

/* Drops the oldest unloaded images beyond the limits, exactly as the daemon does. */
static void
retired_trim(const struct gpc_session *session, unsigned int count_max, uint64_t bytes_max)
	GP_LOCKED(lock)
{
	struct known *known, *next;
	unsigned int count = 0;
	uint64_t bytes = 0;

	LL_FOREACH_SAFE(images, known, next)
	{
		if (known->session != session || !known->retired)
			continue;
		count++;
		bytes += known->size;
		if (count <= count_max && bytes <= bytes_max)
			continue;
		LL_DELETE(images, known);
		known_free(known);
	}
}

static bool
image_retire(struct gpc_image *image) GP_LOCKED(lock)
{
	const struct gpc_device *device = image->device;
	const struct gp_args_gpImageRetire args = { .image = image->handle.id,
						    .device = device->remote };
	struct known *known;

	if (!image->listed || !image->plain || image->size > GP_RETIRED_BYTES ||
	    !call_keeps_order(device, GP_CALL_gpImageRetire))
		return false;
	known = calloc(1, sizeof(*known));
	if (!known)
		return false;
	if (gpc_post_gpImageRetire(device->primary, &args) != CUDA_SUCCESS) {
		free(known);
		return false;
	}
	known->session = device->session;
	known->device = device->remote;
	known->retired = true;
	known->size = image->size;
	memcpy(known->sha256, image->sha256, sizeof(known->sha256));
	(void)pthread_mutex_lock(&image->lock);
	known->info = image->info;
	image->info = NULL;
	info_reset(known->info, image->settings);
	(void)pthread_mutex_unlock(&image->lock);
	LL_PREPEND(images, known);
	retired_trim(known->session, GP_RETIRED_MAX, GP_RETIRED_BYTES);
	return true;
}

void
gpc_image_preload_unload(struct gpc_image *image)
{
	const struct gp_args_gpImageUnload args = { .image = image->handle.id };

	(void)pthread_mutex_lock(&lock);
	if (image->listed)
		DL_DELETE(loaded, image);
	/* The daemon does not know an image that was not loaded. */
	if (image->info && gpc_session_status(image->device->session) == CUDA_SUCCESS &&
	    !image_retire(image))
		(void)gpc_post_gpImageUnload(image->device->primary, &args);
	(void)pthread_mutex_unlock(&lock);
}

bool
gpc_image_preload_drop(struct gpc_context *context)
{
	const struct gp_args_gpImageForget args = { 0 };
	const struct gpc_session *session = context->scope.session;
	const struct known *known;
	bool any = false;

	(void)pthread_mutex_lock(&lock);
	LL_FOREACH(images, known)
	any = any || (known->session == session && known->retired);
	if (any && gpc_post_gpImageForget(context, &args) == CUDA_SUCCESS)
		retired_trim(session, 0, 0);
	(void)pthread_mutex_unlock(&lock);
	return any;
}
