/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/pool.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/log.h"
#include "nvml/entry.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRIVER "libcuda.so.1"

/* Cached state of a device. */
struct cached_state {
	uint64_t sensors_ns; /* time of the last query of the sensors; 0: never */
	struct gp_device_state state;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct gpc_nvml_table *table GP_GUARDED_BY(pool_lock);
static struct cached_state *cached_state GP_GUARDED_BY(pool_lock); /* one per device */
/* Written before `users` is incremented. */
static struct gpn_device devices[GPN_DEVICES_MAX];
static int device_count;
static _Atomic unsigned int users; /* number of nvmlInit without nvmlShutdown */

static int
result_from_cuda(CUresult result)
{
	switch (result) {
	case CUDA_SUCCESS:
		return GPN_SUCCESS;
	case CUDA_ERROR_NOT_SUPPORTED:
		return GPN_NOT_SUPPORTED;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return GPN_MEMORY;
	case CUDA_ERROR_UNKNOWN:
		return GPN_UNKNOWN;
	default:
		return GPN_GPU_IS_LOST;
	}
}

static const struct gpc_nvml_table *
table_get(void *library)
{
	CUresult (*get)(const void **, const CUuuid *);
	const CUuuid id = GPC_NVML_TABLE_ID;
	const void *found;

	*(void **)&get = library ? dlsym(library, "cuGetExportTable") : NULL;
	if (!get || get(&found, &id) != CUDA_SUCCESS ||
	    ((const struct gpc_nvml_table *)found)->size < sizeof(struct gpc_nvml_table))
		return NULL;
	return found;
}

/* Looks for the library that the program has loaded, then for the one in the folder of this
 * library, then by the loader's search path. It is never closed: its threads run in it. */
static const struct gpc_nvml_table *
table_find(void)
{
	const struct gpc_nvml_table *found =
		table_get(dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD));
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;

	if (!found && dladdr(gpn_entry, &info) && (slash = strrchr(info.dli_fname, '/')) &&
	    snprintf(path, sizeof(path), "%.*s/" DRIVER, (int)(slash - info.dli_fname),
		     info.dli_fname) < (int)sizeof(path))
		found = table_get(dlopen(path, RTLD_NOW | RTLD_LOCAL));
	if (!found)
		found = table_get(dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL));
	if (!found)
		gpc_log_always("libnvidia-ml.so.1 finds no " DRIVER " of gpupool");
	return found;
}

static void
format_uuid(const CUuuid *uuid, char *text)
{
	size_t length = (size_t)sprintf(text, "GPU-");

	for (int i = 0; i < 16; i++)
		length += (size_t)sprintf(text + length, "%s%02x",
					  i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					  (unsigned char)uuid->bytes[i]);
}

static int
pool_open(void) GP_LOCKED(pool_lock)
{
	int count = 0;

	if (!table)
		table = table_find();
	if (!table)
		return GPN_LIBRARY_NOT_FOUND;
	if (table->open(&count) != CUDA_SUCCESS)
		return GPN_DRIVER_NOT_LOADED;
	/* The list of devices does not change, so existing handles stay valid. */
	if (device_count)
		return GPN_SUCCESS;
	if (count > GPN_DEVICES_MAX)
		count = GPN_DEVICES_MAX;
	cached_state = calloc((size_t)count + 1, sizeof(*cached_state));
	if (!cached_state)
		return GPN_MEMORY;
	for (int i = 0; i < count; i++) {
		(void)table->device(i, &devices[i].facts);
		devices[i].index = i;
		format_uuid(&devices[i].facts.uuid, devices[i].uuid);
	}
	device_count = count;
	return GPN_SUCCESS;
}

int
gpn_init(int gpus)
{
	int r;

	(void)pthread_mutex_lock(&pool_lock);
	r = pool_open();
	if (r == GPN_DRIVER_NOT_LOADED && !gpus)
		r = GPN_SUCCESS;
	if (r == GPN_SUCCESS)
		users++;
	(void)pthread_mutex_unlock(&pool_lock);
	return r;
}

int
gpn_shutdown(void)
{
	unsigned int before = users;

	while (before && !atomic_compare_exchange_weak(&users, &before, before - 1))
		;
	return before ? GPN_SUCCESS : GPN_UNINITIALIZED;
}

int
gpn_check_arguments(bool valid)
{
	return !users ? GPN_UNINITIALIZED : valid ? GPN_SUCCESS : GPN_INVALID_ARGUMENT;
}

int
gpn_get_device_count(void)
{
	return device_count;
}

struct gpn_device *
gpn_get_device(int index)
{
	return index >= 0 && index < device_count ? &devices[index] : NULL;
}

int
gpn_find_device(const void *handle, bool valid, struct gpn_device **device_p)
{
	int r = gpn_check_arguments(valid);

	for (int i = 0; r == GPN_SUCCESS && i < device_count; i++) {
		if (handle == &devices[i]) {
			*device_p = &devices[i];
			return GPN_SUCCESS;
		}
	}
	return r == GPN_SUCCESS ? GPN_INVALID_ARGUMENT : r;
}

int
gpn_get_driver_version(void)
{
	int version;

	(void)pthread_mutex_lock(&pool_lock);
	version = table ? table->driver_version() : CUDA_VERSION;
	(void)pthread_mutex_unlock(&pool_lock);
	return version;
}

static CUresult
state_fetch(const struct gpn_device *device, unsigned int parts, struct gp_device_state *fresh)
	GP_LOCKED(pool_lock)
{
	int count;
	/* After fork() the child has no session yet, and opens one here. */
	CUresult result = table->open(&count);

	return result == CUDA_SUCCESS ? table->state(device->index, parts, fresh) : result;
}

/* Queries the state and replaces the queried parts in the cache. */
static int
state_query(struct gpn_device *device, unsigned int parts) GP_LOCKED(pool_lock)
{
	struct cached_state *cached = &cached_state[device->index];
	struct gp_device_state *fresh = malloc(sizeof(*fresh));
	CUresult result = fresh ? state_fetch(device, parts, fresh) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS && parts & GP_STATE_SENSORS) {
		cached->state = *fresh;
		cached->sensors_ns = gp_now_ns();
	} else if (result == CUDA_SUCCESS) {
		memcpy(cached->state.words, fresh->words, GP_STATE_NVML * sizeof(*fresh->words));
		cached->state.process_count = fresh->process_count;
		memcpy(cached->state.processes, fresh->processes,
		       fresh->process_count * sizeof(*fresh->processes));
	}
	free(fresh);
	return result_from_cuda(result);
}

static int
state_refresh_sensors(struct gpn_device *device) GP_LOCKED(pool_lock)
{
	uint64_t queried_ns = cached_state[device->index].sensors_ns;

	return queried_ns && gp_now_ns() - queried_ns < GPN_AGE_NS
		       ? GPN_SUCCESS
		       : state_query(device, GP_STATE_SENSORS);
}

bool
gpn_has_peer_access(int index, int other)
{
	bool has_peer_access;

	(void)pthread_mutex_lock(&pool_lock);
	has_peer_access = table->has_peer_access(index, other);
	(void)pthread_mutex_unlock(&pool_lock);
	return has_peer_access;
}

int
gpn_get_value(struct gpn_device *device, int value_id, uint64_t *value_p)
{
	int r;

	(void)pthread_mutex_lock(&pool_lock);
	r = state_refresh_sensors(device);
	if (r == GPN_SUCCESS) {
		*value_p = cached_state[device->index].state.words[value_id];
		if (*value_p == GP_STATE_NONE)
			r = GPN_NOT_SUPPORTED;
	}
	(void)pthread_mutex_unlock(&pool_lock);
	return r;
}

int
gpn_get_text(struct gpn_device *device, int text, char *out, unsigned int size)
{
	int r;

	(void)pthread_mutex_lock(&pool_lock);
	r = state_refresh_sensors(device);
	if (r == GPN_SUCCESS)
		r = *cached_state[device->index].state.texts[text]
			    ? gpn_copy_text(cached_state[device->index].state.texts[text], out,
					    size)
			    : GPN_NOT_SUPPORTED;
	(void)pthread_mutex_unlock(&pool_lock);
	return r;
}

int
gpn_get_memory(struct gpn_device *device, uint64_t *total_p, uint64_t *free_p)
{
	int r;

	(void)pthread_mutex_lock(&pool_lock);
	r = state_query(device, 0);
	*total_p = cached_state[device->index].state.words[GP_STATE_MEMORY_TOTAL];
	*free_p = cached_state[device->index].state.words[GP_STATE_MEMORY_FREE];
	(void)pthread_mutex_unlock(&pool_lock);
	return r;
}

int
gpn_get_processes(struct gpn_device *device, struct gp_state_process *processes, size_t *count_p)
{
	const struct gp_device_state *state;
	int r;

	(void)pthread_mutex_lock(&pool_lock);
	r = state_query(device, GP_STATE_PROCESSES);
	state = &cached_state[device->index].state;
	*count_p = r == GPN_SUCCESS ? state->process_count : 0;
	memcpy(processes, state->processes, *count_p * sizeof(*processes));
	(void)pthread_mutex_unlock(&pool_lock);
	return r;
}

int
gpn_get_process_times(struct gpn_device *device, struct gp_state_process *processes,
		      size_t *count_p)
{
	struct gp_device_state *fresh = malloc(sizeof(*fresh));
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	(void)pthread_mutex_lock(&pool_lock);
	if (fresh)
		result = state_fetch(device, GP_STATE_TIMES, fresh);
	(void)pthread_mutex_unlock(&pool_lock);
	*count_p = result == CUDA_SUCCESS ? fresh->process_count : 0;
	if (*count_p)
		memcpy(processes, fresh->processes, *count_p * sizeof(*processes));
	free(fresh);
	return result_from_cuda(result);
}

int
gpn_copy_text(const char *text, char *out, unsigned int size)
{
	if (!out)
		return GPN_INVALID_ARGUMENT;
	if (strlen(text) >= size)
		return GPN_INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return GPN_SUCCESS;
}

/* After fork() the child has one thread and must query the state itself. */
static void
pool_after_fork(void) GP_LOCK_UNCHECKED
{
	(void)pthread_mutex_init(&pool_lock, NULL);
	for (int i = 0; i < device_count; i++)
		cached_state[i].sensors_ns = 0;
}

__attribute__((constructor)) static void
pool_watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, pool_after_fork);
}
