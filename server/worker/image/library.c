/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/library.h"

#include "server/common/base/clock.h"
#include "server/common/base/log.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiet.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/image/image_load.h"
#include "server/worker/image/preload.h"
#include "server/worker/retire.h"
#include "server/worker/session/session.h"
#include "server/worker/worker.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Who waits for another looks so often whether its own session has ended. */
#define LOOK_NS 20000000
/* A framework brings some hundred images, of some hundred megabytes; several shall fit. */
#define UNUSED_COUNT 4096
#define UNUSED_BYTES ((uint64_t)512 << 20)
/* So many times the limits, and the worker does not wait for a moment without sessions. */
#define URGENT 2

static struct {
	pthread_mutex_t lock;
	pthread_cond_t loaded;
	struct gpd_library *libraries;
	struct gpd_library *newest, *oldest; /* that nobody uses */
	unsigned int unused_count;
	uint64_t unused_bytes;
	struct gpd_library_limits limits;
	struct gpd_library_counts counts;
} registry = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.loaded = PTHREAD_COND_INITIALIZER,
	.limits = { UNUSED_COUNT, UNUSED_BYTES },
};

static struct gpd_library *
create(struct gpd_blob *blob)
{
	struct gpd_library *library = calloc(1, sizeof(*library));

	if (!library)
		return NULL;
	library->functions = calloc((size_t)gpd_worker.device_count, sizeof(library->functions[0]));
	if (!library->functions) {
		free(library);
		return NULL;
	}
	gpd_blob_ref(blob);
	library->blob = blob;
	pthread_mutex_init(&library->lock, NULL);
	pthread_mutex_init(&library->allowing, NULL);
	return library;
}

/* After it was unloaded.  Of a shared one nobody's reference is left, that is, what it kept. */
static void
destroy(struct gpd_library *library)
{
	if (library->shared || library->kept)
		gpd_blob_drop(library->blob);
	else
		gpd_blob_unref(library->blob);
	for (int i = 0; i < gpd_worker.device_count; i++)
		free(atomic_load(&library->functions[i]));
	free(library->functions);
	free(library->kernels);
	free(library->jit);
	free((void *)library->info.data);
	free((void *)library->log.data);
	pthread_mutex_destroy(&library->lock);
	pthread_mutex_destroy(&library->allowing);
	free(library);
}

static void
unload(struct gpd_library *library)
{
	gpd_image_unload(library);
	destroy(library);
}

static void
unused_unlink(struct gpd_library *library)
{
	*(library->newer ? &library->newer->older : &registry.newest) = library->older;
	*(library->older ? &library->older->newer : &registry.oldest) = library->newer;
	library->newer = library->older = NULL;
	registry.unused_count--;
	registry.unused_bytes -= library->key.size;
}

static void
unused_link(struct gpd_library *library)
{
	library->older = registry.newest;
	*(library->older ? &library->older->newer : &registry.oldest) = library;
	registry.newest = library;
	registry.unused_count++;
	registry.unused_bytes += library->key.size;
}

static bool
too_much(unsigned int factor)
{
	uint64_t part = gpd_image_cache_part();
	uint64_t bytes = registry.limits.bytes < part ? registry.limits.bytes : part;

	return registry.unused_count > factor * registry.limits.count ||
	       registry.unused_bytes > factor * bytes;
}

/* Also while there are sessions. */
static bool
is_urgent(void)
{
	return registry.oldest && (too_much(URGENT) || gpd_image_cache_is_beyond());
}

/* The one that was used longest ago, if it is to go. */
static struct gpd_library *
take_oldest(void)
{
	struct gpd_library *library = NULL;

	pthread_mutex_lock(&registry.lock);
	if (is_urgent() || (too_much(1) && !gpd_worker.session_count))
		library = registry.oldest;
	if (library) {
		unused_unlink(library);
		HASH_DEL(registry.libraries, library);
	}
	pthread_mutex_unlock(&registry.lock);
	return library;
}

/* Janitor.  What cannot be done now is done when the next session ends. */
static void
trim(void *unused)
{
	struct gpd_library *library;

	(void)unused;
	while (gpd_quiet_jobs_seek_quiet() && (library = take_oldest()))
		unload(library);
}

void
gpd_library_trim(void)
{
	bool much;

	pthread_mutex_lock(&registry.lock);
	much = too_much(1) || is_urgent();
	pthread_mutex_unlock(&registry.lock);
	if (much)
		gpd_quiet_jobs_run(trim, NULL);
}

/* Under the registry's lock: none of its references is a user's any more. */
static void
stop_using(struct gpd_library *library)
{
	if (!--library->users)
		gpd_blob_keep(library->blob);
}

static void
give_back(struct gpd_library *library)
{
	bool much, gone;

	pthread_mutex_lock(&registry.lock);
	gone = !--library->refs && library->result != CUDA_SUCCESS;
	if (!library->refs && !gone)
		unused_link(library);
	much = is_urgent();
	pthread_mutex_unlock(&registry.lock);
	if (gone)
		destroy(library);
	if (much)
		gpd_quiet_jobs_run(trim, NULL);
}

/* Janitor. */
static void
note(struct gpd_library *library)
{
	unsigned int loaded = 1 + atomic_load(&library->loaded);

	if (loaded == atomic_load(&library->noted))
		gpd_image_cache_use(gpd_blob_sha256(library->blob));
	else if (gpd_preload_note(library))
		atomic_store(&library->noted, loaded);
}

static void
note_and_give_back(void *arg)
{
	note(arg);
	give_back(arg);
}

static void
note_later(struct gpd_library *library)
{
	pthread_mutex_lock(&registry.lock);
	library->refs++;
	pthread_mutex_unlock(&registry.lock);
	gpd_quiet_jobs_run(note_and_give_back, library);
}

void
gpd_library_keep(struct gpd_library *library)
{
	library->kept = true;
	gpd_blob_keep(library->blob);
}

void
gpd_library_put(struct gpd_library *library)
{
	if (!library->shared) {
		unload(library);
		return;
	}
	pthread_mutex_lock(&registry.lock);
	stop_using(library);
	pthread_mutex_unlock(&registry.lock);
	gpd_quiet_jobs_run(note_and_give_back, library);
}

void
gpd_library_leave(struct gpd_library *library)
{
	pthread_mutex_lock(&registry.lock);
	stop_using(library);
	pthread_mutex_unlock(&registry.lock);
	give_back(library);
}

static void
copy_log(const struct gpd_library *library, struct gp_bytes *log_p)
{
	void *copy = library->log.size ? malloc(library->log.size) : NULL;

	if (!copy)
		return;
	memcpy(copy, library->log.data, library->log.size);
	*log_p = (struct gp_bytes){ copy, library->log.size };
}

/* What was loaded on other devices waits for their kernels, too. */
static bool
others_are_quiet(int device)
{
	bool quiet = true;

	for (int i = 0; i < gpd_worker.device_count && quiet; i++)
		quiet = i == device || (gpd_device_enter(i) == CUDA_SUCCESS && gpd_quiet_is(i));
	return gpd_device_enter(device) == CUDA_SUCCESS && quiet;
}

/* At the quiet moment that a load has waited for: a quiet job may be waiting for one for long, and
 * meanwhile loads follow each other. */
static void
make_room(int device)
{
	struct gpd_library *library;
	bool much;

	pthread_mutex_lock(&registry.lock);
	much = is_urgent();
	pthread_mutex_unlock(&registry.lock);
	if (!much || !others_are_quiet(device))
		return;
	while ((library = take_oldest()))
		unload(library);
}

/* All that the driver loads is loaded here and in load_function(). */
static CUresult
load(struct gpd_session *session, struct gpd_library *library, int device, struct gp_bytes options)
{
	CUresult result = CUDA_ERROR_DEINITIALIZED;

	if (!session)
		return gpd_image_load(library, device, options);
	if (gpd_retire_enter(session, device)) {
		make_room(device);
		result = gpd_image_load(library, device, options);
	}
	gpd_retire_leave(session, device);
	return result;
}

static CUresult
load_function(struct gpd_session *session, const struct gpd_kernel *kernel, int device,
	      struct gpd_function *function)
{
	CUresult result = CUDA_ERROR_DEINITIALIZED;

	if (!session)
		return gpd_image_load_function(kernel, function);
	if (gpd_retire_enter(session, device))
		result = gpd_image_load_function(kernel, function);
	gpd_retire_leave(session, device);
	return result;
}

static bool
is_vain(struct gpd_session *session)
{
	return session && atomic_load(&session->closing);
}

/* Another session may be in it for long, as it waits for a quiet moment.  false: the session is
 * closing. */
static bool
lock_library(struct gpd_session *session, struct gpd_library *library)
{
	struct timespec at = gpd_until(LOOK_NS);

	while (pthread_mutex_timedlock(&library->lock, &at)) {
		if (is_vain(session))
			return false;
		at = gpd_until(LOOK_NS);
	}
	return true;
}

/* The library that is there, or will be when who loads it is done (*loading_p: it
 * is still loading, and the session is closing); else one that the caller loads: *fresh_p.  A
 * reference, or NULL: no memory. */
static struct gpd_library *
find(struct gpd_session *session, struct gpd_blob *blob, int device, bool *fresh_p, bool *loading_p)
{
	struct gpd_library_key key = { .size = gpd_blob_size(blob), .device = device };
	struct gpd_library *library;

	memcpy(key.sha256, gpd_blob_sha256(blob), sizeof(key.sha256));
	pthread_mutex_lock(&registry.lock);
	HASH_FIND(hh, registry.libraries, &key, sizeof(key), library);
	*fresh_p = !library;
	*loading_p = false;
	if (library) {
		if (!library->refs++)
			unused_unlink(library);
		if (!library->users++)
			gpd_blob_unkeep(library->blob);
		while (library->loading && !is_vain(session)) {
			struct timespec at = gpd_until(LOOK_NS);

			(void)pthread_cond_timedwait(&registry.loaded, &registry.lock, &at);
		}
		*loading_p = library->loading;
		registry.counts.shared++;
	} else if ((library = create(blob))) {
		library->key = key;
		library->shared = library->loading = true;
		library->refs = library->users = 1;
		HASH_ADD(hh, registry.libraries, key, sizeof(key), library);
		registry.counts.loaded++;
	}
	pthread_mutex_unlock(&registry.lock);
	return library;
}

static void
load_fresh(struct gpd_session *session, struct gpd_library *library)
{
	CUresult result = load(session, library, (int)library->key.device, (struct gp_bytes){ 0 });

	pthread_mutex_lock(&registry.lock);
	library->result = result;
	library->loading = false;
	if (result != CUDA_SUCCESS)
		HASH_DEL(registry.libraries, library);
	pthread_cond_broadcast(&registry.loaded);
	pthread_mutex_unlock(&registry.lock);
}

static void
tell(const struct gpd_library *library, const char *what)
{
	const uint8_t *hash = gpd_blob_sha256(library->blob);
	struct gpd_library_counts counts = gpd_library_counts();

	gpd_debug("image %02x%02x%02x%02x: %s; %" PRIu64 " loaded to be shared, %" PRIu64
		  " times shared, %" PRIu64 " loaded for one alone",
		  hash[0], hash[1], hash[2], hash[3], what, counts.loaded, counts.shared,
		  counts.own);
}

static CUresult
load_own(struct gpd_session *session, struct gpd_blob *blob, int device, struct gp_bytes options,
	 struct gpd_library **library_p, struct gp_bytes *log_p)
{
	struct gpd_library *library = create(blob);
	CUresult result;

	if (!library)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = load(session, library, device, options);
	copy_log(library, log_p);
	if (result != CUDA_SUCCESS) {
		destroy(library);
		return result;
	}
	pthread_mutex_lock(&registry.lock);
	registry.counts.own++;
	pthread_mutex_unlock(&registry.lock);
	tell(library, "loaded for one alone");
	*library_p = library;
	return CUDA_SUCCESS;
}

static CUresult
get_shared(struct gpd_session *session, struct gpd_blob *blob, int device,
	   struct gpd_library **library_p, struct gp_bytes *log_p)
{
	struct gpd_library *library;
	CUresult result;
	bool fresh, loading;

	for (;;) {
		library = find(session, blob, device, &fresh, &loading);
		if (!library)
			return CUDA_ERROR_OUT_OF_MEMORY;
		if (loading) {
			gpd_library_leave(library);
			return CUDA_ERROR_DEINITIALIZED;
		}
		if (fresh)
			load_fresh(session, library);
		result = library->result;
		if (result == CUDA_SUCCESS)
			break;
		if (fresh || result != CUDA_ERROR_DEINITIALIZED)
			copy_log(library, log_p);
		gpd_library_leave(library);
		/* Who was to load it gave up, for its client is gone. */
		if (fresh || result != CUDA_ERROR_DEINITIALIZED)
			return result;
	}
	if (fresh && session)
		note_later(library);
	copy_log(library, log_p);
	tell(library, fresh ? "loaded" : "was loaded before");
	*library_p = library;
	return CUDA_SUCCESS;
}

CUresult
gpd_library_get(struct gpd_session *session, struct gpd_blob *blob, int device, bool may_share,
		struct gp_bytes options, struct gpd_library **library_p, struct gp_bytes *log_p)
{
	if (!may_share || options.size || gpd_blob_uses(blob).state)
		return load_own(session, blob, device, options, library_p, log_p);
	return get_shared(session, blob, device, library_p, log_p);
}

/* Under the library's lock. */
static struct gpd_function *
functions_on(struct gpd_library *library, int device)
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
	struct gpd_function *functions;
	CUresult result = CUDA_SUCCESS;
	unsigned int loaded = 0;

	if (gpd_library_loaded(library, index, device, function_p))
		return CUDA_SUCCESS;
	if (!lock_library(session, library))
		return CUDA_ERROR_DEINITIALIZED;
	functions = functions_on(library, device);
	if (!functions)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!atomic_load(&functions[index].driver))
		result =
			load_function(session, &library->kernels[index], device, &functions[index]);
	if (result == CUDA_SUCCESS)
		loaded = atomic_fetch_add(&library->loaded, 1) + 1;
	pthread_mutex_unlock(&library->lock);
	/* Not for each of hundreds. */
	if (session && library->shared && loaded && (loaded & (loaded - 1)) == 0)
		note_later(library);
	if (result == CUDA_SUCCESS)
		*function_p = &functions[index];
	return result;
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

struct gpd_library_counts
gpd_library_counts(void)
{
	struct gpd_library_counts counts;

	pthread_mutex_lock(&registry.lock);
	counts = registry.counts;
	pthread_mutex_unlock(&registry.lock);
	return counts;
}

void
gpd_library_start(const struct gpd_library_limits *limits)
{
	const struct gpd_library_limits usual = { UNUSED_COUNT, UNUSED_BYTES };

	registry.limits = limits ? *limits : usual;
	registry.counts = (struct gpd_library_counts){ 0 };
}

void
gpd_library_stop(void)
{
	struct gpd_library *library;

	pthread_mutex_lock(&registry.lock);
	while ((library = registry.oldest)) {
		unused_unlink(library);
		HASH_DEL(registry.libraries, library);
		unload(library);
	}
	pthread_mutex_unlock(&registry.lock);
}
