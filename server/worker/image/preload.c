/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/preload.h"

#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/image/image_load.h"
#include "server/worker/image/library.h"
#include "server/worker/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In all of a worker's life.  Loaded code takes about as much of the device's memory. */
#define IMAGES_MAX 512
#define BYTES_MAX ((uint64_t)256 << 20)
#define TIME_MAX_NS (20 * UINT64_C(1000000000))
/* Instead of a kernel's name: all were loaded with the image. */
#define ALL "-"

/* The quiet jobs'. */
static struct {
	struct gpd_image_name *names;
	size_t count, at;
	uint64_t bytes, ns;
	unsigned int loaded;
	bool listed;
} preload;
static _Atomic bool done;

/* A note: lines of the device for which a library was loaded, the device of a function, and its
 * kernel's name. */
struct note {
	char *text;
	size_t size;
	bool full;
};

static void __attribute__((format(printf, 2, 3)))
add_line(struct note *note, const char *format, ...)
{
	size_t room = GPD_NOTE_MAX - note->size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(note->text + note->size, room, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= room) {
		note->text[note->size] = 0;
		note->full = true;
		return;
	}
	note->size += (size_t)n;
}

static void
add_functions(struct note *note, const struct gpd_library *library, int device)
{
	int own = (int)library->key.device;
	struct gpd_function *function;

	if (device == own && library->kernel_count <= GPD_IMAGE_ATTRIBUTES_MAX) {
		add_line(note, "%d %d " ALL "\n", own, device);
		return;
	}
	for (uint32_t i = 0; i < library->kernel_count && !note->full; i++) {
		if (gpd_library_loaded(library, i, device, &function))
			add_line(note, "%d %d %s\n", own, device, library->kernels[i].name);
	}
}

/* Whether the text has the line, with its end. */
static bool
has_line(const char *text, const char *line, size_t length)
{
	for (const char *at = text; (at = strstr(at, line)); at++) {
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return true;
	}
	return false;
}

/* What earlier workers noted, and this one does not know of. */
static void
add_earlier(struct note *note, char *earlier)
{
	size_t known = note->size;
	char *rest, *line = strtok_r(earlier, "\n", &rest);
	char *mine = strndup(note->text, known);

	for (; mine && line && !note->full; line = strtok_r(NULL, "\n", &rest)) {
		if (!has_line(mine, line, strlen(line)))
			add_line(note, "%s\n", line);
	}
	free(mine);
}

bool
gpd_preload_note(struct gpd_library *library)
{
	const uint8_t *sha256 = gpd_blob_sha256(library->blob);
	struct gpd_image_disk *disk = gpd_image_cache_disk();
	struct note note = { 0 };
	char *earlier;
	bool good;

	note.text = disk ? calloc(1, GPD_NOTE_MAX) : NULL;
	if (!note.text)
		return false;
	for (int i = 0; i < gpd_worker.device_count; i++) {
		if (i == (int)library->key.device || atomic_load(&library->functions[i]))
			add_functions(&note, library, i);
	}
	earlier = gpd_image_disk_read_note(disk, sha256);
	if (earlier)
		add_earlier(&note, earlier);
	free(earlier);
	good = gpd_image_disk_write_note(disk, sha256, note.text);
	free(note.text);
	return good;
}

static bool
may_go_on(uint64_t start)
{
	return atomic_load(&gpd_worker.session_count) == 0 && !atomic_load(&gpd_worker.lost) &&
	       preload.ns + (gp_now_ns() - start) < TIME_MAX_NS;
}

static int
find_kernel(const struct gpd_library *library, const char *name)
{
	uint32_t low = 0, high = library->kernel_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(name, library->kernels[middle].name);

		if (order == 0)
			return (int)middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

/* Better now than when there is a session. */
static void
check(CUresult result)
{
	if (gpd_driver_is_sticky(result))
		gpd_worker_lost(NULL, result);
}

static bool
is_device(int device)
{
	return device >= 0 && device < gpd_worker.device_count;
}

static void
load_function(struct gpd_library *library, int device, const char *name)
{
	int index = find_kernel(library, name);
	struct gpd_function *function;

	if (index >= 0 && gpd_device_enter(device) == CUDA_SUCCESS)
		check(gpd_library_function(NULL, library, (uint32_t)index, device, &function));
}

/* In place of the library that was loaded for another device, or NULL. */
static struct gpd_library *
library_for(struct gpd_blob *blob, int device, struct gpd_library *library)
{
	struct gp_bytes log = { 0 };

	if (library && library->key.device == device)
		return library;
	if (library)
		gpd_library_leave(library);
	library = NULL;
	if (gpd_device_enter(device) == CUDA_SUCCESS)
		check(gpd_library_get(NULL, blob, device, true, (struct gp_bytes){ 0 }, &library,
				      &log));
	free((void *)log.data);
	return library;
}

static void
load_noted(struct gpd_blob *blob, char *note, uint64_t start)
{
	struct gpd_library *library = NULL;
	char *rest, *line = strtok_r(note, "\n", &rest);

	for (; line && may_go_on(start); line = strtok_r(NULL, "\n", &rest)) {
		int own, device, name = 0;

		if (sscanf(line, "%d %d %n", &own, &device, &name) != 2 || !name ||
		    !is_device(own) || !is_device(device))
			continue;
		library = library_for(blob, own, library);
		if (library && strcmp(line + name, ALL))
			load_function(library, device, line + name);
	}
	if (library)
		gpd_library_leave(library);
}

static void
load_image(const struct gpd_image_name *name, uint64_t start)
{
	struct gpd_image_disk *disk = gpd_image_cache_disk();
	char *note = gpd_image_disk_read_note(disk, name->sha256);
	struct gpd_blob *blob = note ? gpd_image_cache_peek(name) : NULL;

	/* What ends the worker is not tried again by the next. */
	if (blob && !gpd_blob_uses(blob).state &&
	    gpd_image_disk_hold_note(disk, name->sha256, true)) {
		load_noted(blob, note, start);
		(void)gpd_image_disk_hold_note(disk, name->sha256, false);
		preload.bytes += name->size;
		preload.loaded++;
	}
	gpd_blob_unref(blob);
	free(note);
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
