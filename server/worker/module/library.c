/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/library.h"

#include "base/clock.h"
#include "base/lock.h"
#include "image/fatbin.h"
#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiesce.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/module/image_bytes.h"
#include "server/worker/module/image_load.h"
#include "server/worker/module/unpacking.h"
#include "server/worker/session/session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A session that waits for another thread checks at this interval whether it has ended. */
#define POLL_NS 20000000

/* A framework has some hundred images of some hundred megabytes; several should fit. */
unsigned int gpd_library_unused_count = 4096;
uint64_t gpd_library_unused_bytes = (uint64_t)512 << 20;
struct gpd_library_counts gpd_library_counts;
/* The software device needs this multiple of a PTX text's size. */
#define TEXT_COST 20

static struct {
	pthread_mutex_t lock;
	pthread_cond_t loaded;
	struct gpd_library *libraries;
	/* utlist of unused libraries: first those to unload, then those that may stay, oldest
	 * first. */
	struct gpd_library *unused;
	unsigned int unused_count; /* of those that may stay */
	uint64_t unused_bytes;
	bool trims; /* a job to trim is queued */
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER };
GP_COND_CONSTRUCTOR(registry.loaded);

static struct gpd_library *
library_create(struct gpd_blob *blob, int device)
{
	struct gpd_library *library = calloc(1, sizeof(*library));

	if (!library)
		return NULL;
	gpd_blob_ref(blob);
	library->blob = blob;
	library->key = (struct gpd_library_key){ blob->key, device };
	library->driver_size = gpd_image_driver_size(blob, device);
	pthread_mutex_init(&library->lock, NULL);
	pthread_mutex_init(&library->allowing, NULL);
	return library;
}

static void
library_destroy(struct gpd_library *library)
{
	gpd_blob_unref(library->blob);
	for (int i = 0; i < gpd_devices.count; i++)
		free(atomic_load(&library->functions[i]));
	free(library->kernels);
	free(library->jit);
	free((void *)library->info.data);
	free((void *)library->log.data);
	pthread_mutex_destroy(&library->lock);
	pthread_mutex_destroy(&library->allowing);
	free(library);
}

static void
library_unload(struct gpd_library *library)
{
	gpd_image_unload(library);
	if (library->gone)
		library->gone(library->gone_arg);
	library_destroy(library);
}

/* The memory that the limits count for it. */
static uint64_t
get_memory(const struct gpd_library *library)
{
	const struct gp_image *image = library->blob->image;
	uint64_t size = library->key.image.size;

	if (image && gp_image_type(image) == GP_IMAGE_PTX)
		size *= TEXT_COST;
	return size + library->driver_size;
}

/* The registry must be locked, here and below. */
static void
unused_unlink(struct gpd_library *library)
{
	DL_DELETE(registry.unused, library);
	if (library->shared) {
		registry.unused_count--;
		registry.unused_bytes -= get_memory(library);
	}
}

static void
unused_link(struct gpd_library *library)
{
	DL_APPEND(registry.unused, library);
	registry.unused_count++;
	registry.unused_bytes += get_memory(library);
}

static bool
library_is_excess(const struct gpd_library *library)
{
	return !library->shared || registry.unused_count > gpd_library_unused_count ||
	       registry.unused_bytes > gpd_library_unused_bytes;
}

/* Removes and returns the next library to unload, or NULL. */
static struct gpd_library *
unused_pop_excess(void)
{
	struct gpd_library *library;

	pthread_mutex_lock(&registry.lock);
	library = registry.unused;
	if (library && library_is_excess(library)) {
		unused_unlink(library);
		if (library->shared)
			HASH_DEL(registry.libraries, library);
	} else {
		library = NULL;
	}
	pthread_mutex_unlock(&registry.lock);
	return library;
}

static bool
unused_is_excess(void)
{
	bool much;

	pthread_mutex_lock(&registry.lock);
	much = registry.unused && library_is_excess(registry.unused);
	pthread_mutex_unlock(&registry.lock);
	return much;
}

/* Runs as a quiescence job. Excess libraries that may stay can wait until the next session ends. */
static void
unused_trim(void *unused)
{
	struct gpd_library *library;
	bool again;

	while (unused_is_excess() && gpd_quiesce_jobs_try() && (library = unused_pop_excess()))
		library_unload(library);
	pthread_mutex_lock(&registry.lock);
	again = registry.trims = registry.unused && !registry.unused->shared;
	pthread_mutex_unlock(&registry.lock);
	if (again)
		gpd_quiesce_jobs_add(unused_trim, unused);
}

void
gpd_library_trim(void)
{
	bool much;

	pthread_mutex_lock(&registry.lock);
	much = !registry.trims && registry.unused && library_is_excess(registry.unused);
	registry.trims = registry.trims || much;
	pthread_mutex_unlock(&registry.lock);
	if (much)
		gpd_quiesce_jobs_add(unused_trim, NULL);
}

void
gpd_library_unref(struct gpd_library *library)
{
	bool gone;

	pthread_mutex_lock(&registry.lock);
	gone = !--library->refs && library->result != CUDA_SUCCESS;
	if (!library->refs && !gone)
		unused_link(library);
	pthread_mutex_unlock(&registry.lock);
	if (gone)
		library_destroy(library);
	gpd_library_trim();
}

void
gpd_library_put(struct gpd_library *library)
{
	if (library->shared)
		gpd_library_unref(library);
	else
		library_unload(library);
}

void
gpd_library_unload_later(struct gpd_library *library, void (*gone)(void *arg), void *arg)
{
	library->gone = gone;
	library->gone_arg = arg;
	pthread_mutex_lock(&registry.lock);
	DL_PREPEND(registry.unused, library);
	pthread_mutex_unlock(&registry.lock);
	gpd_library_trim();
}

bool
gpd_bytes_copy(struct gp_bytes bytes, struct gp_bytes *copy_p)
{
	void *copy = bytes.size && copy_p ? malloc(bytes.size) : NULL;

	if (!copy_p)
		return true;
	if (bytes.size && !copy)
		return false;
	if (copy)
		memcpy(copy, bytes.data, bytes.size);
	*copy_p = (struct gp_bytes){ copy, bytes.size };
	return true;
}

/* Whether kernels run on another device: unloading code waits for those, too. */
static bool
others_are_busy(int device)
{
	bool busy = false;

	for (int i = 0; i < gpd_devices.count && !busy; i++)
		busy = i != device && gpd_device_has_context(i) &&
		       (gpd_device_enter(i) != CUDA_SUCCESS || !gpd_quiesce_is_idle(i));
	return gpd_device_enter(device) != CUDA_SUCCESS || busy;
}

/* Called while the device is nearly idle for a load. A quiescence job may wait long for a nearly
 * idle device while loads follow each other; this bounds the number of unused libraries. */
static void
unused_trim_now(int device)
{
	struct gpd_library *library;

	if (!unused_is_excess() || others_are_busy(device))
		return;
	while ((library = unused_pop_excess()))
		library_unload(library);
}

/* Waits for an extraction slot for this size and for a nearly idle device. It never holds one while
 * it waits for the other: waiting for a nearly idle device stops other sessions, and an extraction
 * may take long. false: the session is closing. */
static bool
loading_begin(struct gpd_session *session, int device, struct gpd_unpacking *unpacking,
	      uint64_t size)
{
	while (gpd_unpacking_begin(unpacking, session, size)) {
		gpd_unpacking_end(unpacking);
		if (gpd_session_quiesce_begin(session, device) &&
		    gpd_unpacking_try(unpacking, session, size))
			return true;
		gpd_session_quiesce_end(session, device);
		if (atomic_load(&session->closing) || atomic_load(&gpd_devices.lost))
			break;
	}
	return false;
}

static void
loading_end(struct gpd_session *session, int device, struct gpd_unpacking *unpacking)
{
	gpd_unpacking_end(unpacking);
	gpd_session_quiesce_end(session, device);
}

/* The driver loads code only here and in load_function(). */
static CUresult
library_load(struct gpd_session *session, struct gpd_library *library, int device,
	     struct gp_bytes options)
{
	struct gpd_unpacking unpacking;
	CUresult result;

	if (!loading_begin(session, device, &unpacking, library->driver_size))
		return CUDA_ERROR_DEINITIALIZED;
	unused_trim_now(device);
	result = gpd_image_load(library, device, options);
	loading_end(session, device, &unpacking);
	return result;
}

/* With a library's first function the driver may extract or compile all of its code. session NULL:
 * while the library itself is being loaded. */
static CUresult
load_function(struct gpd_session *session, struct gpd_library *library, uint32_t index, int device,
	      struct gpd_function *function) GP_LOCKED(library->lock)
{
	const uint64_t size = library->unpacked[device] ? 0 : library->driver_size;
	struct gpd_unpacking unpacking;
	CUresult result;

	if (session && !loading_begin(session, device, &unpacking, size))
		return CUDA_ERROR_DEINITIALIZED;
	result = gpd_image_load_function(&library->kernels[index], function);
	if (session)
		loading_end(session, device, &unpacking);
	if (result == CUDA_SUCCESS)
		library->unpacked[device] = true;
	return result;
}

/* Another session may hold the lock for long, waiting for a nearly idle device. false: the session
 * is closing. */
static bool
lock_library(struct gpd_session *session, struct gpd_library *library)
	GP_TRY_LOCKS(true, library->lock)
{
	while (!gp_lock_until(&library->lock, gp_now_ns() + POLL_NS)) {
		if (session && atomic_load(&session->closing))
			return false;
	}
	return true;
}

/* Returns the existing library with the result of its load, after waiting for it, or a new one that
 * the caller must load (*fresh_p). Adds a reference. *library_p NULL: out of memory. */
static CUresult
library_find_or_create(struct gpd_session *session, struct gpd_blob *blob, int device,
		       struct gpd_library **library_p, bool *fresh_p)
{
	const struct gpd_library_key key = { blob->key, device };
	struct gpd_library *library;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&registry.lock);
	HASH_FIND(hh, registry.libraries, &key, sizeof(key), library);
	*fresh_p = !library;
	if (library) {
		if (!library->refs++)
			unused_unlink(library);
		while (library->loading && !atomic_load(&session->closing))
			(void)gp_cond_wait_until(&registry.loaded, &registry.lock,
						 gp_now_ns() + POLL_NS);
		result = library->loading ? CUDA_ERROR_DEINITIALIZED : library->result;
		gpd_library_counts.shared++;
	} else if ((library = library_create(blob, device))) {
		library->shared = library->loading = true;
		library->refs = 1;
		HASH_ADD(hh, registry.libraries, key, sizeof(key), library);
		gpd_library_counts.loaded++;
	}
	pthread_mutex_unlock(&registry.lock);
	*library_p = library;
	return result;
}

static CUresult
load_fresh(struct gpd_session *session, struct gpd_library *library)
{
	CUresult result =
		library_load(session, library, (int)library->key.device, (struct gp_bytes){ 0 });

	pthread_mutex_lock(&registry.lock);
	library->result = result;
	library->loading = false;
	if (result != CUDA_SUCCESS)
		HASH_DEL(registry.libraries, library);
	pthread_cond_broadcast(&registry.loaded);
	pthread_mutex_unlock(&registry.lock);
	return result;
}

static void
library_log(const struct gpd_library *library, const char *what)
{
	const uint8_t *hash = library->key.image.sha256;

	gpd_debug("image %02x%02x%02x%02x: %s; %" PRIu64 " loaded to be shared, %" PRIu64
		  " times shared, %" PRIu64 " loaded for one alone",
		  hash[0], hash[1], hash[2], hash[3], what, gpd_library_counts.loaded,
		  gpd_library_counts.shared, gpd_library_counts.own);
}

static CUresult
load_own(struct gpd_session *session, struct gpd_blob *blob, int device, struct gp_bytes options,
	 struct gpd_library **library_p, struct gp_bytes *log_p)
{
	struct gpd_library *library = library_create(blob, device);
	CUresult result;

	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = library_load(session, library, device, options);
	(void)gpd_bytes_copy(library->log, log_p);
	if (result != CUDA_SUCCESS) {
		library_destroy(library);
		return result;
	}
	gpd_library_counts.own++;
	library_log(library, "loaded for one alone");
	*library_p = library;
	return CUDA_SUCCESS;
}

static CUresult
get_shared(struct gpd_session *session, struct gpd_blob *blob, int device,
	   struct gpd_library **library_p, struct gp_bytes *log_p)
{
	struct gpd_library *library;
	CUresult result;
	bool fresh;

	do {
		result = library_find_or_create(session, blob, device, &library, &fresh);
		if (!library)
			return result;
		if (fresh)
			result = load_fresh(session, library);
		if (result != CUDA_ERROR_DEINITIALIZED)
			(void)gpd_bytes_copy(library->log, log_p);
		if (result != CUDA_SUCCESS)
			gpd_library_unref(library);
		/* The session that was to load it may have been closed before; then this one
		 * tries. */
	} while (result == CUDA_ERROR_DEINITIALIZED && !fresh && !atomic_load(&session->closing));
	if (result != CUDA_SUCCESS)
		return result;
	library_log(library, fresh ? "loaded" : "was loaded before");
	*library_p = library;
	return CUDA_SUCCESS;
}

CUresult
gpd_library_get(struct gpd_session *session, struct gpd_blob *blob, int device, bool may_share,
		struct gp_bytes options, struct gpd_library **library_p, struct gp_bytes *log_p)
{
	if (!may_share || options.size || blob->uses.state)
		return load_own(session, blob, device, options, library_p, log_p);
	return get_shared(session, blob, device, library_p, log_p);
}

static struct gpd_function *
functions_get(struct gpd_library *library, int device) GP_LOCKED(library->lock)
{
	struct gpd_function *functions = atomic_load(&library->functions[device]);

	if (functions)
		return functions;
	functions = calloc(library->kernel_count, sizeof(*functions));
	atomic_store(&library->functions[device], functions);
	return functions;
}

CUresult
gpd_library_function(struct gpd_session *session, struct gpd_library *library, uint32_t index,
		     int device, struct gpd_function **function_p)
{
	struct gpd_function *functions = atomic_load(&library->functions[device]);
	CUresult result = CUDA_SUCCESS;

	if (functions && atomic_load(&functions[index].driver)) {
		*function_p = &functions[index];
		return CUDA_SUCCESS;
	}
	if (!lock_library(session, library))
		return CUDA_ERROR_DEINITIALIZED;
	functions = functions_get(library, device);
	if (!functions)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!atomic_load(&functions[index].driver))
		result = load_function(session, library, index, device, &functions[index]);
	pthread_mutex_unlock(&library->lock);
	if (result == CUDA_SUCCESS)
		*function_p = &functions[index];
	return result;
}

CUresult
gpd_library_global(const struct gpd_library *library, const char *name, bool managed,
		   CUdeviceptr *address_p, size_t *size_p)
{
	/* A driver without managed memory has it as an ordinary variable. */
	if (managed && gpd_driver.cuLibraryGetManaged(address_p, size_p, library->driver, name) ==
			       CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return gpd_driver.cuLibraryGetGlobal(address_p, size_p, library->driver, name);
}

CUresult
gpd_library_allow(struct gpd_library *library, struct gpd_function *function, int bytes)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&library->allowing);
	if (bytes > atomic_load(&function->dynamic_most)) {
		result = gpd_driver.cuFuncSetAttribute(
			atomic_load(&function->driver),
			CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
		if (result == CUDA_SUCCESS)
			atomic_store(&function->dynamic_most, bytes);
	}
	pthread_mutex_unlock(&library->allowing);
	return result;
}
