/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/preload.h"

#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/image/image_load.h"
#include "server/worker/image/library.h"
#include "server/worker/session/sessions.h"

#include <stdlib.h>
#include <string.h>

/* In all of a worker's life.  Loaded code takes about as much of the device's memory. */
#define IMAGES_MAX 512
#define BYTES_MAX ((uint64_t)256 << 20)
#define TIME_MAX_NS (20 * UINT64_C(1000000000))

/* The quiet jobs'. */
static struct {
	struct gpd_image_name *names;
	size_t count, at;
	uint64_t bytes, ns;
	unsigned int loaded;
	bool listed;
} preload;
static _Atomic bool done;

/*
 * A note: how many kernels the image has, and for each device for which it was loaded, the first
 * ones, for each of its kernels a bit for each device on which that was loaded.
 */
struct note {
	uint32_t *words;
	size_t size; /* bytes */
	uint32_t kernels, owners;
};

/* false: there is none that makes sense. */
static bool
read_note(const uint8_t *sha256, struct note *note)
{
	struct gpd_image_disk *disk = gpd_image_cache_disk();
	size_t count;

	*note = (struct note){ 0 };
	note->words = disk ? gpd_image_disk_read_note(disk, sha256, &note->size) : NULL;
	if (!note->words)
		return false;
	count = note->size / sizeof(uint32_t);
	if (count > 1 && note->words[0] && (count - 1) % note->words[0] == 0) {
		note->kernels = note->words[0];
		note->owners = (uint32_t)((count - 1) / note->kernels);
	}
	return note->owners > 0;
}

static uint32_t *
devices_of(const struct note *note, uint32_t owner, uint32_t kernel)
{
	return &note->words[1 + (size_t)owner * note->kernels + kernel];
}

/* With room for what was loaded for this device; what earlier workers noted stays. */
static bool
extend(struct note *note, uint32_t kernels, uint32_t owners)
{
	bool known = note->kernels == kernels;
	size_t size;
	uint32_t *words;

	if (known && note->owners >= owners)
		return true;
	size = sizeof(uint32_t) * (1 + (size_t)owners * kernels);
	words = size <= GPD_NOTE_MAX ? calloc(1, size) : NULL;
	if (!words)
		return false;
	if (known)
		memcpy(words, note->words, note->size);
	free(note->words);
	words[0] = kernels;
	*note = (struct note){ words, size, kernels, owners };
	return true;
}

bool
gpd_preload_note(struct gpd_library *library)
{
	const uint8_t *sha256 = gpd_blob_sha256(library->blob);
	uint32_t owner = (uint32_t)library->key.device;
	struct gpd_image_disk *disk = gpd_image_cache_disk();
	struct gpd_function *function;
	struct note note;
	bool good;

	if (!disk || !library->kernel_count || !gpd_image_disk_use(disk, sha256))
		return false;
	(void)read_note(sha256, &note);
	good = extend(&note, library->kernel_count, owner + 1);
	for (uint32_t i = 0; good && i < note.kernels; i++) {
		for (int device = 0; device < gpd_devices.count; device++) {
			if (gpd_library_loaded(library, i, device, &function))
				*devices_of(&note, owner, i) |= 1u << device;
		}
	}
	if (good)
		gpd_image_disk_write_note(disk, sha256, note.words, note.size);
	free(note.words);
	return good;
}

static bool
may_go_on(uint64_t start)
{
	return atomic_load(&gpd_sessions.count) == 0 && !atomic_load(&gpd_devices.lost) &&
	       preload.ns + (gp_now_ns() - start) < TIME_MAX_NS;
}

/* Better now than when there is a session. */
static void
check(CUresult result)
{
	if (gpd_driver_is_sticky(result))
		gpd_sessions_lost(NULL, result);
}

static void
load_kernel(struct gpd_library *library, uint32_t kernel, uint32_t devices)
{
	struct gpd_function *function;

	for (int device = 0; device < gpd_devices.count; device++) {
		if (devices >> device & 1 && gpd_device_enter(device) == CUDA_SUCCESS)
			check(gpd_library_function(NULL, library, kernel, device, &function));
	}
}

/* What was loaded for this device. */
static void
load_noted(struct gpd_blob *blob, const struct note *note, uint32_t owner, uint64_t start)
{
	struct gpd_library *library = NULL;
	struct gp_bytes log = { 0 };
	uint32_t kernel = 0;

	while (kernel < note->kernels && !*devices_of(note, owner, kernel))
		kernel++;
	if (kernel == note->kernels || gpd_device_enter((int)owner) != CUDA_SUCCESS)
		return;
	check(gpd_library_get(NULL, blob, (int)owner, true, (struct gp_bytes){ 0 }, &library,
			      &log));
	free((void *)log.data);
	if (!library)
		return;
	for (; library->kernel_count == note->kernels && kernel < note->kernels && may_go_on(start);
	     kernel++)
		load_kernel(library, kernel, *devices_of(note, owner, kernel));
	gpd_library_unref(library);
}

static void
load_image(const struct gpd_image_name *name, uint64_t start)
{
	struct gpd_image_disk *disk = gpd_image_cache_disk();
	struct note note;
	struct gpd_blob *blob = read_note(name->sha256, &note) ? gpd_image_cache_peek(name) : NULL;

	if (blob && !gpd_blob_uses(blob).state) {
		/* What ends the worker is not tried again by the next. */
		gpd_image_disk_drop_note(disk, name->sha256);
		for (uint32_t owner = 0; owner < note.owners && owner < (uint32_t)gpd_devices.count;
		     owner++)
			load_noted(blob, &note, owner, start);
		gpd_image_disk_write_note(disk, name->sha256, note.words, note.size);
		preload.bytes += name->size;
		preload.loaded++;
	}
	gpd_blob_unref(blob);
	free(note.words);
}

static void
list(void)
{
	struct gpd_image_disk *disk = gpd_image_cache_disk();

	preload.names = disk ? calloc(IMAGES_MAX, sizeof(*preload.names)) : NULL;
	if (preload.names)
		preload.count = gpd_image_disk_recent(disk, preload.names, IMAGES_MAX);
	preload.listed = true;
}

static void
finish(void)
{
	atomic_store(&done, true);
	if (preload.loaded)
		gpd_info("%u images that were used before are loaded", preload.loaded);
	free(preload.names);
	preload.names = NULL;
}

static void
work(void *unused)
{
	uint64_t start = gp_now_ns();

	(void)unused;
	if (atomic_load(&done))
		return;
	if (!preload.listed)
		list();
	while (preload.at < preload.count && may_go_on(start)) {
		const struct gpd_image_name *name = &preload.names[preload.at];

		/* A session may come while it is loaded: then the rest of it comes later. */
		if (preload.bytes + name->size <= BYTES_MAX)
			load_image(name, start);
		if (may_go_on(start))
			preload.at++;
		else
			break;
	}
	preload.ns += gp_now_ns() - start;
	if (preload.at >= preload.count || preload.ns >= TIME_MAX_NS)
		finish();
}

void
gpd_preload_idle(void)
{
	if (!atomic_load(&done))
		gpd_quiet_jobs_run(work, NULL);
}

void
gpd_preload_restart(void)
{
	gpd_quiet_jobs_wait();
	free(preload.names);
	memset(&preload, 0, sizeof(preload));
	atomic_store(&done, false);
}
