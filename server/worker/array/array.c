/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/array/array.h"

#include "base/lock.h"
#include "gpd_calls.h"
#include "server/worker/array/array_memory.h"
#include "server/worker/array/sparse_array.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiesce.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Destroyed arrays of all sessions, used by executors, responders and quiescence jobs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gone;
GP_COND_CONSTRUCTOR(gone);
static struct gpd_array *leaving GP_GUARDED_BY(lock); /* utlist */

struct gpd_array *
gpd_array_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_ARRAY, id);
}

CUresult
gpd_array_find(const struct gpd_session *session, uint32_t id, uint32_t level,
	       const struct gp_array_box *box, CUarray *array_p)
{
	const struct gpd_array *array = gpd_array_get(session, id);
	uint32_t levels;

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	levels = array->shape.levels ? array->shape.levels : 1;
	if (level >= levels || !gp_array_contains(&array->shape, level, box))
		return CUDA_ERROR_INVALID_VALUE;
	*array_p = array->levels[level];
	return CUDA_SUCCESS;
}

/* Returns an unused array of a session (NULL: of any) and of a device (-1: of any). */
static struct gpd_array *
find_idle(const struct gpd_session *session, int device) GP_LOCKED(lock)
{
	struct gpd_array *array;

	LL_FOREACH(leaving, array)
	{
		if (array->state == GPD_ARRAY_IDLE && (!session || array->session == session) &&
		    (device < 0 || array->device == device))
			return array;
	}
	return NULL;
}

/* Ends the charge for the array and for the memory of its tiles. */
static void
array_discharge(struct gpd_session *session, struct gpd_array *array)
{
	gpd_tiles_unref(array, &session->account);
	gpd_account_free(&session->account, array->device, array->charged);
}

/* Frees such an array in the driver. The device must be current and idle. */
static bool
idle_array_drop(const struct gpd_session *session, int device)
{
	struct gpd_array *array;

	pthread_mutex_lock(&lock);
	array = find_idle(session, device);
	if (array)
		array->state = GPD_ARRAY_FREEING;
	pthread_mutex_unlock(&lock);
	if (!array)
		return false;
	gpd_array_drop(array);
	pthread_mutex_lock(&lock);
	LL_DELETE(leaving, array);
	/* The session cannot end while the lock is held. */
	if (array->session)
		array_discharge(array->session, array);
	pthread_cond_broadcast(&gone);
	pthread_mutex_unlock(&lock);
	free(array);
	return true;
}

/* Not urgent. The array may meanwhile be reused, or freed by another thread. */
static void
idle_array_drop_one(void *none)
{
	const struct gpd_array *array;
	int device = -1;

	pthread_mutex_lock(&lock);
	array = find_idle(NULL, -1);
	if (array)
		device = array->device;
	pthread_mutex_unlock(&lock);
	if (device < 0 || gpd_device_enter(device) != CUDA_SUCCESS)
		return;
	gpd_quiesce_try(device);
	/* Some work may not end for long; launches must not wait for it in the driver. */
	if (gpd_quiesce_is_idle(device))
		(void)idle_array_drop(NULL, device);
	else
		gpd_quiesce_jobs_add(idle_array_drop_one, NULL);
}

/* Urgent: other sessions may be stopped for it. false: the device does not become nearly idle. */
static bool
idle_arrays_drop(struct gpd_session *waiting, const struct gpd_session *session, int device)
{
	bool quiesced;

	if (gpd_device_enter(device) != CUDA_SUCCESS)
		return false;
	quiesced = gpd_session_quiesce_begin(waiting, device);
	while (quiesced && idle_array_drop(session, device))
		continue;
	gpd_session_quiesce_end(waiting, device);
	return quiesced;
}

static void
array_leave(struct gpd_array *array, struct gpd_session *session, enum gpd_array_state state)
{
	pthread_mutex_lock(&lock);
	array->state = state;
	array->session = session;
	LL_APPEND(leaving, array);
	pthread_mutex_unlock(&lock);
}

static void
array_drop_later(struct gpd_array *array)
{
	array_leave(array, NULL, GPD_ARRAY_IDLE);
	gpd_quiesce_jobs_add(idle_array_drop_one, NULL);
}

static void
array_unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_array *array = arg;

	pthread_mutex_lock(&lock);
	array->state = GPD_ARRAY_IDLE;
	pthread_mutex_unlock(&lock);
	gpd_quiesce_jobs_add(idle_array_drop_one, NULL);
}

CUresult
gpd_array_release(struct gpd_session *session, struct gpd_array *array)
{
	if (--array->users > 0)
		return CUDA_SUCCESS;
	array_leave(array, session, GPD_ARRAY_LEAVING);
	/* Without a marker the context is lost, or about to be: the array is freed with the
	 * session. */
	return gpd_wait_add_all(session, NULL, array_unused, array);
}

/* Returns a destroyed array that the driver still has, of this session or (NULL) of an ended one,
 * so that programs that create and destroy the same array repeatedly need no second one. */
static struct gpd_array *
array_reuse(struct gpd_session *session, const struct gp_array_shape *shape, int device)
{
	struct gpd_array *array;

	pthread_mutex_lock(&lock);
	LL_FOREACH(leaving, array)
	{
		if (array->state == GPD_ARRAY_IDLE && array->device == device &&
		    array->session == session && !gpd_array_is_sparse(array) &&
		    memcmp(&array->shape, shape, sizeof(*shape)) == 0)
			break;
	}
	if (array) {
		LL_DELETE(leaving, array);
		array->state = GPD_ARRAY_USED;
		pthread_cond_broadcast(&gone);
	}
	pthread_mutex_unlock(&lock);
	return array;
}

static bool
arrays_wait_idle_freed(struct gpd_session *session, int device)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = find_idle(NULL, device) != NULL;
	pthread_mutex_unlock(&lock);
	return any && idle_arrays_drop(session, NULL, device);
}

static CUresult
array_obtain(void *array)
{
	return gpd_array_obtain(array);
}

static CUresult
array_fill(struct gpd_session *session, struct gpd_array *array, bool granted)
{
	CUresult result =
		granted ? gpd_allowance_obtain(session, array->device, array_obtain, array)
			: gpd_array_obtain(array);

	/* Freed memory may still have been in use. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
	    (session->account.reclaim_memory(&session->account) ||
	     arrays_wait_idle_freed(session, array->device)))
		result = gpd_array_obtain(array);
	if (result != CUDA_SUCCESS)
		return result;
	/* Another session may have had this memory. Tiles of a sparse array are mapped later,
	 * zeroed. */
	result = gpd_array_is_sparse(array) ? gpd_tiles_query_tiling(array) : gpd_array_zero(array);
	if (result != CUDA_SUCCESS)
		gpd_array_drop(array);
	return result;
}

static CUresult
array_make_new(struct gpd_session *session, const struct gp_array_shape *shape, int device,
	       uint64_t size, bool granted, struct gpd_array **array_p)
{
	struct gpd_array *array = calloc(1, sizeof(*array));
	CUresult result;

	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->shape = *shape;
	array->device = device;
	array->charged = size;
	result = array_fill(session, array, granted);
	if (result == CUDA_SUCCESS)
		*array_p = array;
	else
		free(array);
	return result;
}

/* Returns a zeroed array of an ended session, or a new one. size bytes are charged for it. */
static CUresult
array_make(struct gpd_session *session, const struct gp_array_shape *shape, int device,
	   uint64_t size, bool granted, struct gpd_array **array_p)
{
	CUresult result = CUDA_SUCCESS;

	*array_p = array_reuse(NULL, shape, device);
	if (!*array_p) {
		result = array_make_new(session, shape, device, size, granted, array_p);
	} else {
		result = gpd_array_zero(*array_p);
		if (result != CUDA_SUCCESS)
			array_drop_later(*array_p);
	}
	return result;
}

/* Returns a destroyed array of the session, which is still charged and contains only its own data,
 * or another one that is charged now, unless granted: then it is charged already. */
static CUresult
array_find_or_make(struct gpd_session *session, const struct gp_array_shape *shape, int device,
		   bool granted, struct gpd_array **array_p)
{
	uint64_t size = gp_array_get_footprint(shape);
	CUresult result = CUDA_SUCCESS;

	*array_p = array_reuse(session, shape, device);
	if (*array_p) {
		gpd_account_free(&session->account, device, granted ? size : 0);
		return CUDA_SUCCESS;
	}
	if (!granted)
		result = gpd_account_allocate(&session->account, device, size);
	if (result != CUDA_SUCCESS)
		return result;
	result = array_make(session, shape, device, size, granted, array_p);
	if (result != CUDA_SUCCESS)
		gpd_account_free(&session->account, device, size);
	return result;
}

static CUresult
array_create(struct gpd_session *session, uint32_t id, int device,
	     const struct gp_array_shape *shape, bool granted)
{
	struct gpd_array *array;
	CUresult result;

	if (!gpd_device_get(device) || !gpd_account_may_use(&session->account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = gp_array_check(shape);
	if (result == CUDA_SUCCESS && session->arrays->count == GP_ARRAYS_MAX)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS && granted &&
	    !gpd_allowance_consume(session, device, gp_array_get_footprint(shape)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = array_find_or_make(session, shape, device, granted, &array);
	if (result != CUDA_SUCCESS)
		return result;
	array->users = 1;
	result = gpd_session_add_handle(session, GPD_KIND_ARRAY, id, &array->handle);
	if (result == CUDA_SUCCESS) {
		session->arrays->count++;
	} else {
		gpd_account_free(&session->account, array->device, array->charged);
		array_drop_later(array);
	}
	return result;
}

CUresult
gpd_gpArrayCreate(struct gpd_session *session, const struct gp_args_gpArrayCreate *args)
{
	const struct gp_array_shape shape = { GP_ARRAY_SHAPE(args) };

	return array_create(session, args->array, args->device, &shape, false);
}

CUresult
gpd_gpArrayMake(struct gpd_session *session, const struct gp_args_gpArrayMake *args)
{
	const struct gp_array_shape shape = { GP_ARRAY_SHAPE(args) };

	return array_create(session, args->array, args->device, &shape, true);
}

CUresult
gpd_gpArrayDestroy(struct gpd_session *session, const struct gp_args_gpArrayDestroy *args)
{
	struct gpd_array *array = gpd_array_get(session, args->array);

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_handle_remove(&session->handles, &array->handle);
	session->arrays->count--;
	return gpd_array_release(session, array);
}

static uint64_t
arrays_get_leaving_size(const struct gpd_session *session, int device)
{
	const struct gpd_array *array;
	uint64_t size = 0;

	pthread_mutex_lock(&lock);
	LL_FOREACH(leaving, array)
	{
		if (array->session == session && array->device == device)
			size += array->charged;
	}
	pthread_mutex_unlock(&lock);
	return size;
}

static struct gpd_array *
array_find_leaving(const struct gpd_session *session) GP_LOCKED(lock)
{
	struct gpd_array *array;

	LL_SEARCH_SCALAR(leaving, array, session, session);
	return array;
}

/* An array whose end of use cannot be detected is not waited for. */
static bool
arrays_wait_freed(struct gpd_session *session)
{
	const struct gpd_array *array;
	bool any = false;

	pthread_mutex_lock(&lock);
	while ((array = array_find_leaving(session))) {
		enum gpd_array_state state = array->state;
		int device = array->device;

		any = true;
		if (state == GPD_ARRAY_FREEING) {
			pthread_cond_wait(&gone, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		if (state == GPD_ARRAY_LEAVING && !gpd_wait_is_empty(session))
			gpd_wait_any(session);
		else if (state == GPD_ARRAY_LEAVING || !idle_arrays_drop(session, session, device))
			return any;
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return any;
}

void
gpd_array_release_at_end(struct gpd_session *session, struct gpd_array *array)
{
	if (--array->users > 0)
		return;
	array_discharge(session, array);
	array_drop_later(array);
}

void
gpd_arrays_destroy(struct gpd_session *session)
{
	struct gpd_array *array;
	unsigned int count = 0;

	for (uint32_t at = 0; (array = gpd_handle_next(&session->handles, GPD_KIND_ARRAY, &at));) {
		gpd_handle_remove(&session->handles, &array->handle);
		gpd_array_release_at_end(session, array);
	}
	pthread_mutex_lock(&lock);
	while ((array = array_find_leaving(session))) {
		if (array->state == GPD_ARRAY_FREEING) {
			pthread_cond_wait(&gone, &lock);
			continue;
		}
		array_discharge(session, array);
		array->session = NULL;
		array->state = GPD_ARRAY_IDLE;
		count++;
	}
	pthread_mutex_unlock(&lock);
	while (count-- > 0)
		gpd_quiesce_jobs_add(idle_array_drop_one, NULL);
}

static const struct gpd_memory_array_ops memory_ops = {
	.leaving_size = arrays_get_leaving_size,
	.wait_freed = arrays_wait_freed,
	.wait_idle_freed = arrays_wait_idle_freed,
};

void
gpd_arrays_register(struct gpd_session *session)
{
	gpd_memory_set_array_ops(session, &memory_ops);
}
