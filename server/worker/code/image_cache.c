/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/code/image_cache.h"

#include "image/fatbin.h"
#include "server/common/ledger/code_memory.h"
#include "server/worker/code/image_disk.h"
#include "server/worker/code/image_scan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#define MEMORY_DEFAULT ((uint64_t)512 << 20)
/* Writing at the same time; beyond that the loads wait. */
#define WRITERS_MAX 8
#define DISK_DEFAULT ((uint64_t)1 << 30)
/* Of the memory for device code, that a worker keeps for nobody. */
#define KEPT_PART 16

struct gpd_blob {
	uint8_t sha256[GPD_SHA256_SIZE];
	UT_hash_handle hh;
	unsigned int refs;
	unsigned int keepers;           /* of them, those that are kept for nobody */
	bool kept;                      /* there are no others */
	struct gpd_blob *newer, *older; /* when there are none */
	void *bytes;
	size_t size;
	struct gp_image *image;
	int image_error;
	bool opened;
	bool scanned;
	struct gpd_image_uses uses;
	pthread_mutex_t look; /* over the view and what was found out */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t written;
	struct gpd_blob *blobs;
	struct gpd_blob *newest, *oldest;
	uint64_t idle;                  /* bytes without a reference */
	uint64_t kept;                  /* and those that have keepers only */
	struct gpd_code_memory *memory; /* NULL: no limit */
	struct gpd_code_place *place;   /* bytes of all blobs, and of those to come */
	struct gpd_image_cache_limits limits;
	struct gpd_image_disk *disk;
	unsigned int writers;
	unsigned int users; /* of the disk */
} cache = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.written = PTHREAD_COND_INITIALIZER,
	.limits = { MEMORY_DEFAULT, DISK_DEFAULT },
};

void *
gpd_image_bytes_alloc(size_t size)
{
	void *bytes;

	return posix_memalign(&bytes, GP_IMAGE_ALIGN, size ? size : 1) ? NULL : bytes;
}

static void
blob_free(struct gpd_blob *blob)
{
	gp_image_destroy(blob->image);
	pthread_mutex_destroy(&blob->look);
	free(blob->bytes);
	free(blob);
}

static void
idle_unlink(struct gpd_blob *blob)
{
	*(blob->newer ? &blob->newer->older : &cache.newest) = blob->older;
	*(blob->older ? &blob->older->newer : &cache.oldest) = blob->newer;
	blob->newer = blob->older = NULL;
	cache.idle -= blob->size;
}

static void
idle_link(struct gpd_blob *blob)
{
	blob->older = cache.newest;
	*(blob->older ? &blob->older->newer : &cache.oldest) = blob;
	cache.newest = blob;
	cache.idle += blob->size;
}

void
gpd_image_cache_give(uint64_t size)
{
	if (cache.place)
		gpd_code_give(cache.place, size);
}

static void
trim(uint64_t limit)
{
	while (cache.idle > limit) {
		struct gpd_blob *blob = cache.oldest;

		idle_unlink(blob);
		HASH_DEL(cache.blobs, blob);
		cache.kept -= blob->size;
		if (cache.place)
			gpd_code_drop(cache.place, blob->size);
		blob_free(blob);
	}
}

/* Of a worker's part of the memory for device code: others cannot take what it keeps for later. */
uint64_t
gpd_image_cache_part(void)
{
	return cache.memory ? atomic_load(&cache.memory->max) / KEPT_PART : UINT64_MAX;
}

static uint64_t
idle_max(void)
{
	uint64_t part = gpd_image_cache_part(), others = cache.kept - cache.idle;
	uint64_t max = cache.limits.memory < part ? cache.limits.memory : part;

	return max > others ? max - others : 0;
}

/* By how much all workers together have more than they may. */
static uint64_t
excess(void)
{
	uint64_t used = cache.memory ? gpd_code_used(cache.memory) : 0;
	uint64_t max = cache.memory ? atomic_load(&cache.memory->max) : 0;

	return used > max ? used - max : 0;
}

bool
gpd_image_cache_is_beyond(void)
{
	return excess() > 0;
}

bool
gpd_image_cache_is_dropping(void)
{
	uint64_t kept;

	pthread_mutex_lock(&cache.lock);
	kept = cache.kept;
	pthread_mutex_unlock(&cache.lock);
	return kept && (kept / 2 > gpd_image_cache_part() || excess());
}

/* Beyond the limit there is only what sessions hold: each has its least there, and no more than
 * they are. */
static void
trim_excess(void)
{
	uint64_t bytes = excess();

	if (bytes)
		trim(cache.idle > bytes ? cache.idle - bytes : 0);
}

/* A reference more, of who holds it.  `more`: as gpd_code_hold() has it. */
static bool
hold(struct gpd_blob *blob, uint64_t more)
{
	if (blob->kept) {
		if (cache.place && !gpd_code_hold(cache.memory, cache.place, blob->size, more))
			return false;
		blob->kept = false;
		cache.kept -= blob->size;
	}
	if (!blob->refs++)
		idle_unlink(blob);
	return true;
}

void
gpd_image_cache_trim(void)
{
	pthread_mutex_lock(&cache.lock);
	trim(idle_max());
	trim_excess();
	pthread_mutex_unlock(&cache.lock);
}

/* After a reference less, or a keeper more. */
static void
settle(struct gpd_blob *blob)
{
	if (!blob->kept && blob->refs == blob->keepers) {
		blob->kept = true;
		cache.kept += blob->size;
		if (cache.place)
			gpd_code_keep(cache.memory, cache.place, blob->size);
	}
	if (!blob->refs)
		idle_link(blob);
	trim(idle_max());
	trim_excess();
}

/* Takes bytes over, and what was taken for them; the one that is there already if another session
 * was faster. */
static struct gpd_blob *
insert(const uint8_t *sha256, void *bytes, size_t size, bool *fresh)
{
	struct gpd_blob *blob, *made = calloc(1, sizeof(*made));

	*fresh = false;
	if (!made) {
		free(bytes);
		gpd_image_cache_give(size);
		return NULL;
	}
	memcpy(made->sha256, sha256, GPD_SHA256_SIZE);
	made->bytes = bytes;
	made->size = size;
	made->refs = 1;
	pthread_mutex_init(&made->look, NULL);
	pthread_mutex_lock(&cache.lock);
	HASH_FIND(hh, cache.blobs, sha256, GPD_SHA256_SIZE, blob);
	if (!blob) {
		blob = made;
		HASH_ADD(hh, cache.blobs, sha256, GPD_SHA256_SIZE, blob);
		*fresh = true;
	} else {
		/* Its memory for the other's. */
		gpd_image_cache_give(size);
		(void)hold(blob, UINT64_MAX);
	}
	pthread_mutex_unlock(&cache.lock);
	if (blob != made)
		blob_free(made);
	return blob;
}

/* The disk, which stays until disk_leave(); or NULL. */
static struct gpd_image_disk *
disk_enter(void)
{
	struct gpd_image_disk *disk;

	pthread_mutex_lock(&cache.lock);
	disk = cache.disk;
	cache.users += disk != NULL;
	pthread_mutex_unlock(&cache.lock);
	return disk;
}

static void
disk_leave(void)
{
	pthread_mutex_lock(&cache.lock);
	cache.users--;
	pthread_cond_broadcast(&cache.written);
	pthread_mutex_unlock(&cache.lock);
}

/* Of another size it is another one, although no two have one hash. */
static struct gpd_blob *
of_size(struct gpd_blob *blob, size_t size)
{
	if (!blob || blob->size == size)
		return blob;
	gpd_blob_unref(blob);
	return NULL;
}

struct gpd_blob *
gpd_image_cache_get(const struct gpd_image_name *name, uint64_t more, bool *full)
{
	struct gpd_blob *blob;

	pthread_mutex_lock(&cache.lock);
	HASH_FIND(hh, cache.blobs, name->sha256, GPD_SHA256_SIZE, blob);
	*full = blob && !hold(blob, more);
	if (*full)
		blob = NULL;
	pthread_mutex_unlock(&cache.lock);
	return of_size(blob, name->size);
}

bool
gpd_image_cache_take(uint64_t size, uint64_t more)
{
	if (!cache.place)
		return true;
	if (!gpd_code_take(cache.memory, cache.place, size, more))
		return false;
	/* Only now: a request that is refused costs nobody what is kept. */
	pthread_mutex_lock(&cache.lock);
	trim_excess();
	pthread_mutex_unlock(&cache.lock);
	return true;
}

bool
gpd_image_cache_could_take(uint64_t size, uint64_t more)
{
	return !cache.place || gpd_code_fits(cache.memory, cache.place, size, more);
}

static struct gpd_blob *
find(const struct gpd_image_name *name, uint64_t more, bool use, bool *full)
{
	struct gpd_blob *blob = gpd_image_cache_get(name, more, full);
	struct gpd_image_disk *disk = blob || *full ? NULL : disk_enter();
	void *bytes;
	bool fresh;

	if (!disk)
		return blob;
	if (gpd_image_disk_has(disk, name->sha256, name->size)) {
		*full = !gpd_image_cache_take(name->size, more);
		bytes = *full ? NULL : gpd_image_disk_read(disk, name->sha256, name->size, use);
		if (bytes)
			blob = insert(name->sha256, bytes, name->size, &fresh);
		else if (!*full)
			gpd_image_cache_give(name->size);
	}
	disk_leave();
	return of_size(blob, name->size);
}

struct gpd_blob *
gpd_image_cache_find(const struct gpd_image_name *name, uint64_t more, bool *full)
{
	return find(name, more, true, full);
}

struct gpd_blob *
gpd_image_cache_peek(const struct gpd_image_name *name)
{
	bool full;

	return find(name, 0, false, &full);
}

bool
gpd_image_cache_is_kept(void)
{
	bool kept;

	pthread_mutex_lock(&cache.lock);
	kept = cache.disk != NULL;
	pthread_mutex_unlock(&cache.lock);
	return kept;
}

size_t
gpd_image_cache_recent(struct gpd_image_name *names, size_t room)
{
	struct gpd_image_disk *disk = disk_enter();
	size_t count;

	if (!disk)
		return 0;
	count = gpd_image_disk_recent(disk, names, room);
	disk_leave();
	return count;
}

void
gpd_image_cache_use(const uint8_t sha256[GPD_SHA256_SIZE])
{
	struct gpd_image_disk *disk = disk_enter();

	if (!disk)
		return;
	(void)gpd_image_disk_use(disk, sha256);
	disk_leave();
}

char *
gpd_image_cache_note(const uint8_t sha256[GPD_SHA256_SIZE])
{
	struct gpd_image_disk *disk = disk_enter();
	char *note;

	if (!disk)
		return NULL;
	note = gpd_image_disk_read_note(disk, sha256);
	disk_leave();
	return note;
}

bool
gpd_image_cache_hold_note(const uint8_t sha256[GPD_SHA256_SIZE], bool hold)
{
	struct gpd_image_disk *disk = disk_enter();
	bool good;

	if (!disk)
		return false;
	good = gpd_image_disk_hold_note(disk, sha256, hold);
	disk_leave();
	return good;
}

bool
gpd_image_cache_set_note(const uint8_t sha256[GPD_SHA256_SIZE], const char *text)
{
	struct gpd_image_disk *disk = strlen(text) <= GPD_NOTE_MAX ? disk_enter() : NULL;
	bool good;

	if (!disk)
		return false;
	good = gpd_image_disk_write_note(disk, sha256, text);
	disk_leave();
	return good;
}

static void *
write_out(void *arg)
{
	struct gpd_blob *blob = arg;

	gpd_image_disk_write(cache.disk, blob->sha256, blob->bytes, blob->size);
	gpd_blob_unref(blob);
	pthread_mutex_lock(&cache.lock);
	cache.writers--;
	pthread_cond_broadcast(&cache.written);
	pthread_mutex_unlock(&cache.lock);
	return NULL;
}

/* A session's load does not wait for the disk. */
static void
write_later(struct gpd_blob *blob)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool many;

	gpd_blob_ref(blob);
	pthread_mutex_lock(&cache.lock);
	many = cache.writers++ >= WRITERS_MAX;
	pthread_mutex_unlock(&cache.lock);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (many || pthread_create(&thread, &attributes, write_out, blob))
		write_out(blob);
	pthread_attr_destroy(&attributes);
}

struct gpd_blob *
gpd_image_cache_add(const uint8_t sha256[GPD_SHA256_SIZE], void *bytes, size_t size)
{
	bool fresh;
	struct gpd_blob *blob = insert(sha256, bytes, size, &fresh);

	if (fresh && cache.disk)
		write_later(blob);
	return blob;
}

int
gpd_image_cache_account(struct gpd_code_memory *memory)
{
	cache.place = gpd_code_enter(memory, (int32_t)getpid());
	cache.memory = memory;
	return cache.place ? 0 : -EAGAIN;
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
	blob->refs--;
	settle(blob);
	pthread_mutex_unlock(&cache.lock);
}

void
gpd_blob_keep(struct gpd_blob *blob)
{
	pthread_mutex_lock(&cache.lock);
	blob->keepers++;
	settle(blob);
	pthread_mutex_unlock(&cache.lock);
}

void
gpd_blob_unkeep(struct gpd_blob *blob)
{
	pthread_mutex_lock(&cache.lock);
	blob->keepers--;
	pthread_mutex_unlock(&cache.lock);
}

void
gpd_blob_drop(struct gpd_blob *blob)
{
	pthread_mutex_lock(&cache.lock);
	blob->keepers--;
	blob->refs--;
	settle(blob);
	pthread_mutex_unlock(&cache.lock);
}

size_t
gpd_blob_size(const struct gpd_blob *blob)
{
	return blob->size;
}

const uint8_t *
gpd_blob_sha256(const struct gpd_blob *blob)
{
	return blob->sha256;
}

int
gpd_blob_image(struct gpd_blob *blob, const struct gp_image **image_p)
{
	pthread_mutex_lock(&blob->look);
	if (!blob->opened) {
		blob->image_error = gp_image_open(blob->bytes, blob->size, &blob->image);
		blob->opened = blob->image_error != -ENOMEM;
	}
	*image_p = blob->image;
	pthread_mutex_unlock(&blob->look);
	return blob->image_error;
}

struct gpd_image_uses
gpd_blob_uses(struct gpd_blob *blob)
{
	const struct gp_image *image;

	if (gpd_blob_image(blob, &image))
		return (struct gpd_image_uses){ .state = true };
	pthread_mutex_lock(&blob->look);
	if (!blob->scanned)
		blob->uses = gpd_image_scan(image);
	blob->scanned = true;
	pthread_mutex_unlock(&blob->look);
	return blob->uses;
}

void
gpd_image_cache_start(const char *dir, const struct gpd_image_cache_limits *limits)
{
	if (limits)
		cache.limits = *limits;
	if (!cache.disk)
		cache.disk = gpd_image_disk_open(dir, cache.limits.disk);
}

void
gpd_image_cache_stop(void)
{
	struct gpd_image_disk *disk;

	pthread_mutex_lock(&cache.lock);
	while (cache.writers || cache.users)
		pthread_cond_wait(&cache.written, &cache.lock);
	trim(0);
	disk = cache.disk;
	cache.disk = NULL;
	pthread_mutex_unlock(&cache.lock);
	gpd_image_disk_close(disk);
}
