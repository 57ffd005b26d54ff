/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image_cache/image_cache.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "image/code_check.h"
#include "image/fatbin.h"
#include "server/worker/image_cache/image_scan.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define MEMORY_DEFAULT ((uint64_t)128 << 20)
/* Writer threads per tenant at the same time; beyond that a load writes the file itself. */
#define WRITERS_OF_TENANT 2
/* Maximum number of blobs without a reference: a small one takes more memory than its bytes. */
#define IDLE_MAX 16384
#define DISK_DEFAULT ((uint64_t)1 << 30)
/* A waiting session checks at this interval whether it has been closed. */
#define POLL_NS 20000000

uint64_t gpd_image_cache_stall_ns = UINT64_C(2000000000);
uint64_t gpd_image_cache_wait_ns = UINT64_C(10000000000);

/* A tenant that has sent the bytes of a blob. */
struct gpd_blob_owner {
	struct gpd_blob_owner *next;
	char tenant[];
};

/* A file that is being written. */
struct output {
	struct output *prev, *next;
	struct gpd_blob *blob; /* holds a reference */
	char tenant[];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t came; /* an upload has completed or been abandoned */
	pthread_cond_t written;
	struct gpd_blob *blobs;
	struct gpd_blob *unused; /* utlist of blobs without a reference, oldest first */
	uint64_t idle;           /* sum of their bytes */
	unsigned int idle_count;
	struct gpd_image_cache_limits limits;
	bool disk;              /* set before there are threads */
	struct output *outputs; /* utlist of files being written */
} cache = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.limits = { MEMORY_DEFAULT, DISK_DEFAULT },
};
GP_COND_CONSTRUCTOR(cache.came);
GP_COND_CONSTRUCTOR(cache.written);

static void
blob_free(struct gpd_blob *blob)
{
	struct gpd_blob_owner *owner, *next;

	LL_FOREACH_SAFE(blob->owners, owner, next)
	{
		free(owner);
	}
	gp_image_destroy(blob->image);
	free(blob->error_text);
	free(blob->bytes);
	free(blob);
}

static void
idle_unlink(struct gpd_blob *blob)
{
	DL_DELETE(cache.unused, blob);
	cache.idle -= blob->key.size;
	cache.idle_count--;
}

static void
idle_link(struct gpd_blob *blob)
{
	DL_APPEND(cache.unused, blob);
	cache.idle += blob->key.size;
	cache.idle_count++;
}

static void
idle_trim(uint64_t limit, unsigned int count)
{
	while (cache.idle > limit || cache.idle_count > count) {
		struct gpd_blob *blob = cache.unused;

		idle_unlink(blob);
		HASH_DEL(cache.blobs, blob);
		blob_free(blob);
	}
}

static struct gpd_blob *
blob_find(const uint8_t *sha256) GP_LOCKED(cache.lock)
{
	struct gpd_blob *blob;

	HASH_FIND(hh, cache.blobs, sha256, GPD_SHA256_SIZE, blob);
	return blob;
}

/* Creates a blob without bytes. NULL: out of memory. */
static struct gpd_blob *
blob_create(const uint8_t *sha256) GP_LOCKED(cache.lock)
{
	struct gpd_blob *blob = calloc(1, sizeof(*blob));

	if (!blob)
		return NULL;
	memcpy(blob->key.sha256, sha256, GPD_SHA256_SIZE);
	HASH_ADD(hh, cache.blobs, key.sha256, GPD_SHA256_SIZE, blob);
	return blob;
}

static const char *
get_tenant(const struct gpd_image_uploader *uploader)
{
	return uploader && uploader->tenant ? uploader->tenant : "";
}

static bool
is_owner(const struct gpd_blob *blob, const struct gpd_image_uploader *uploader)
	GP_LOCKED(cache.lock)
{
	const struct gpd_blob_owner *owner;

	LL_FOREACH(blob->owners, owner)
	{
		if (strcmp(owner->tenant, get_tenant(uploader)) == 0)
			return true;
	}
	return false;
}

/* On failure to allocate, the tenant has to send the image again. */
static void
add_owner(struct gpd_blob *blob, const struct gpd_image_uploader *uploader) GP_LOCKED(cache.lock)
{
	const char *tenant = get_tenant(uploader);
	struct gpd_blob_owner *owner = malloc(sizeof(*owner) + strlen(tenant) + 1);

	if (!owner)
		return;
	strcpy(owner->tenant, tenant);
	LL_PREPEND(blob->owners, owner);
}

/* Makes the uploader the blob's only one; NULL: none. */
static void
blob_set_uploader(struct gpd_blob *blob, struct gpd_image_uploader *uploader) GP_LOCKED(cache.lock)
{
	if (blob->uploader)
		blob->uploader->blob = NULL;
	blob->uploader = uploader;
	if (uploader)
		uploader->blob = blob;
}

static void
upload_abandon(struct gpd_image_uploader *uploader) GP_LOCKED(cache.lock)
{
	struct gpd_blob *blob = uploader->blob;

	if (!blob)
		return;
	blob_set_uploader(blob, NULL);
	HASH_DEL(cache.blobs, blob);
	blob_free(blob);
	pthread_cond_broadcast(&cache.came);
}

void
gpd_image_cache_abandon_upload(struct gpd_image_uploader *uploader)
{
	pthread_mutex_lock(&cache.lock);
	upload_abandon(uploader);
	pthread_mutex_unlock(&cache.lock);
}

void
gpd_image_cache_upload_progress(struct gpd_image_uploader *uploader)
{
	pthread_mutex_lock(&cache.lock);
	if (uploader->blob)
		uploader->blob->heard_ns = gp_now_ns();
	pthread_mutex_unlock(&cache.lock);
}

/* Checks the code, because the driver follows offsets in it without any check. */
static int
open_image(const void *bytes, size_t size, struct gp_unpack_limiter *limiter,
	   struct gp_image **image_p, struct gpd_image_uses *uses_p)
{
	int r = gp_image_open(bytes, size, image_p);

	if (r)
		return r;
	r = gp_image_check_code(*image_p, limiter);
	if (!r)
		r = gpd_image_scan(*image_p, limiter, uses_p);
	if (r) {
		gp_image_destroy(*image_p);
		*image_p = NULL;
	}
	return r;
}

/* Whether the error is a property of the image, hence the same for every session. */
static bool
error_is_permanent(int error)
{
	return error != -ENOMEM && error != -EDQUOT && error != -ECANCELED;
}

/* Stores the bytes in the blob, or frees them if the blob has its bytes already. *new_p: the tenant
 * did not own the blob before. */
static struct gpd_blob *
blob_insert(const struct gpd_image_uploader *uploader, const uint8_t *sha256, void *bytes,
	    size_t size, bool *new_p)
{
	struct gp_image *image = NULL;
	struct gpd_image_uses uses = { 0 };
	int error = open_image(bytes, size, uploader ? uploader->limiter : NULL, &image, &uses);
	struct gpd_blob *blob;
	bool fresh;

	*new_p = false;
	if (error && !error_is_permanent(error)) {
		free(bytes);
		return NULL;
	}
	if (error)
		uses = (struct gpd_image_uses){ .state = true };
	pthread_mutex_lock(&cache.lock);
	blob = blob_find(sha256);
	if (!blob)
		blob = blob_create(sha256);
	fresh = blob && !blob->bytes;
	if (fresh) {
		blob->bytes = bytes;
		blob->key.size = size;
		blob->image = image;
		blob->image_error = error;
		blob->error_text = error == -EBADMSG ? strdup(gp_image_get_error()) : NULL;
		blob->uses = uses;
		blob->refs = 1;
		blob_set_uploader(blob, NULL);
		pthread_cond_broadcast(&cache.came);
	} else {
		gp_image_destroy(image);
		free(bytes);
		if (blob && !blob->refs++)
			idle_unlink(blob);
	}
	*new_p = blob && !is_owner(blob, uploader);
	if (*new_p)
		add_owner(blob, uploader);
	pthread_mutex_unlock(&cache.lock);
	return blob;
}

/* Returns a reference, or NULL if the size differs, although no two images have the same hash. */
static struct gpd_blob *
blob_acquire(struct gpd_blob *blob, size_t size) GP_LOCKED(cache.lock)
{
	if (blob->key.size != size)
		return NULL;
	if (!blob->refs++)
		idle_unlink(blob);
	return blob;
}

static struct gpd_blob *
blob_read_disk(const struct gpd_image_key *key, const struct gpd_image_uploader *uploader)
{
	void *bytes = gpd_image_disk_read(key, get_tenant(uploader));
	bool new;

	return bytes ? blob_insert(uploader, key->sha256, bytes, key->size, &new) : NULL;
}

static bool
is_same_tenant(const struct gpd_image_uploader *a, const struct gpd_image_uploader *b)
{
	return strcmp(get_tenant(a), get_tenant(b)) == 0;
}

/* Waits for another uploader of the same tenant while it makes progress. Returns the blob, or NULL
 * if there is none. */
static struct gpd_blob *
blob_wait(const uint8_t *sha256, struct gpd_image_uploader *uploader, const _Atomic bool *given_up)
	GP_LOCKED(cache.lock)
{
	uint64_t now = gp_now_ns();
	struct gpd_blob *blob;

	while ((blob = blob_find(sha256)) && !blob->bytes &&
	       is_same_tenant(blob->uploader, uploader) &&
	       now - blob->heard_ns < gpd_image_cache_stall_ns &&
	       uploader->waited_ns < gpd_image_cache_wait_ns && !atomic_load(given_up)) {
		uint64_t begin = now;

		(void)gp_cond_wait_until(&cache.came, &cache.lock, now + POLL_NS);
		now = gp_now_ns();
		uploader->waited_ns += now - begin;
	}
	return blob;
}

struct gpd_blob *
gpd_image_cache_get(const struct gpd_image_key *key, struct gpd_image_uploader *uploader,
		    const _Atomic bool *given_up)
{
	struct gpd_blob *blob;

	pthread_mutex_lock(&cache.lock);
	upload_abandon(uploader);
	blob = blob_wait(key->sha256, uploader, given_up);
	if (blob && blob->bytes && is_owner(blob, uploader)) {
		blob = blob_acquire(blob, key->size);
		pthread_mutex_unlock(&cache.lock);
		return blob;
	}
	/* Other sessions of the tenant now wait for this uploader. */
	if (!blob)
		blob = blob_create(key->sha256);
	if (blob && !blob->bytes && (!blob->uploader || is_same_tenant(blob->uploader, uploader))) {
		blob_set_uploader(blob, uploader);
		blob->heard_ns = gp_now_ns();
	}
	pthread_mutex_unlock(&cache.lock);
	return blob_read_disk(key, uploader);
}

struct gpd_blob *
gpd_image_cache_find(const struct gpd_image_key *key)
{
	struct gpd_blob *blob;

	pthread_mutex_lock(&cache.lock);
	blob = blob_find(key->sha256);
	if (blob && blob->bytes)
		blob = blob_acquire(blob, key->size);
	else
		blob = NULL;
	pthread_mutex_unlock(&cache.lock);
	return blob;
}

static void *
output_write(void *arg)
{
	struct output *output = arg;

	gpd_image_disk_write(&output->blob->key, output->tenant, output->blob->bytes);
	gpd_blob_unref(output->blob);
	pthread_mutex_lock(&cache.lock);
	DL_DELETE(cache.outputs, output);
	pthread_cond_broadcast(&cache.written);
	pthread_mutex_unlock(&cache.lock);
	free(output);
	return NULL;
}

static unsigned int
count_outputs(const char *tenant) GP_LOCKED(cache.lock)
{
	const struct output *output;
	unsigned int count = 0;

	DL_FOREACH(cache.outputs, output)
	{
		count += strcmp(output->tenant, tenant) == 0;
	}
	return count;
}

/* Written by a thread, so that a session's load does not wait for the disk, unless its tenant
 * writes much. */
static void
output_start(struct gpd_blob *blob, const char *tenant)
{
	struct output *output = malloc(sizeof(*output) + strlen(tenant) + 1);
	bool many;

	if (!output)
		return;
	gpd_blob_ref(blob);
	output->blob = blob;
	strcpy(output->tenant, tenant);
	pthread_mutex_lock(&cache.lock);
	many = count_outputs(tenant) >= WRITERS_OF_TENANT;
	DL_APPEND(cache.outputs, output);
	pthread_mutex_unlock(&cache.lock);
	if (many || gp_thread_start("image-disk", 0, output_write, output))
		output_write(output);
}

struct gpd_blob *
gpd_image_cache_add(struct gpd_image_uploader *uploader, const uint8_t sha256[GPD_SHA256_SIZE],
		    void *bytes, size_t size)
{
	bool new;
	struct gpd_blob *blob = blob_insert(uploader, sha256, bytes, size, &new);

	if (new &&cache.disk)
		output_start(blob, get_tenant(uploader));
	return blob;
}

void
gpd_blob_ref(struct gpd_blob *blob)
{
	pthread_mutex_lock(&cache.lock);
	blob->refs++;
	pthread_mutex_unlock(&cache.lock);
}

void
gpd_blob_unref(struct gpd_blob *blob)
{
	if (!blob)
		return;
	pthread_mutex_lock(&cache.lock);
	if (!--blob->refs)
		idle_link(blob);
	idle_trim(cache.limits.memory, IDLE_MAX);
	pthread_mutex_unlock(&cache.lock);
}

void
gpd_image_cache_start(const char *dir, const struct gpd_image_cache_limits *limits)
{
	if (limits)
		cache.limits = *limits;
	cache.disk = gpd_image_disk_start(dir, cache.limits.disk);
}

void
gpd_image_cache_stop(void)
{
	pthread_mutex_lock(&cache.lock);
	while (cache.outputs)
		pthread_cond_wait(&cache.written, &cache.lock);
	idle_trim(0, 0);
	pthread_mutex_unlock(&cache.lock);
}
