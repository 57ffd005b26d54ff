/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/array.h"

#include "base/lock.h"
#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiet.h"
#include "server/worker/device/quiet_jobs.h"
#include "server/worker/memory/array_memory.h"
#include "server/worker/memory/grant.h"
#include "server/worker/memory/tiles.h"
#include "server/worker/session/session.h"
#include "server/worker/session/wait.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* What sessions have given back: the executors', the responders', and the quiet jobs'. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gone;
GP_COND_AT_START(gone);
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

/* One that nothing uses, of a session or (NULL) of anybody, and of a device or (-1) of any.  Under
 * the lock. */
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

/* The session does not have it any more, nor what lies behind its tiles. */
static void
discharge(struct gpd_session *session, struct gpd_array *array)
{
	gpd_tiles_leave(array, &session->account);
	gpd_account_free(&session->account, array->device, array->charged);
}

/* Gives the driver such a one, at a quiet moment of the device, which is current. */
static bool
drop(const struct gpd_session *session, int device)
{
	struct gpd_array *array;

	pthread_mutex_lock(&lock);
	array = find_idle(session, device);
	if (array)
		array->state = GPD_ARRAY_GOING;
	pthread_mutex_unlock(&lock);
	if (!array)
		return false;
	gpd_array_drop(array);
	pthread_mutex_lock(&lock);
	LL_DELETE(leaving, array);
	/* Under the lock the session stays. */
	if (array->session)
		discharge(array->session, array);
	pthread_cond_broadcast(&gone);
	pthread_mutex_unlock(&lock);
	free(array);
	return true;
}

/* In no hurry; it may have been used again, or given back by who was. */
static void
drop_one(void *none)
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
	gpd_quiet_seek(device);
	/* There may be work that does not end for long: then nobody's launches are to wait for it.
	 */
	if (gpd_quiet_is(device))
		(void)drop(NULL, device);
	else
		gpd_quiet_jobs_run(drop_one, NULL);
}

/* Somebody waits; others may be stopped for it.  false: there is no such moment any more. */
static bool
drop_all(struct gpd_session *waiting, const struct gpd_session *session, int device)
{
	bool quiet;

	if (gpd_device_enter(device) != CUDA_SUCCESS)
		return false;
	quiet = gpd_session_quiet_begin(waiting, device);
	while (quiet && drop(session, device))
		continue;
	gpd_session_quiet_end(waiting, device);
	return quiet;
}

static void
leave(struct gpd_array *array, struct gpd_session *session, enum gpd_array_state state)
{
	pthread_mutex_lock(&lock);
	array->state = state;
	array->session = session;
	LL_APPEND(leaving, array);
	pthread_mutex_unlock(&lock);
}

static void
bury(struct gpd_array *array)
{
	leave(array, NULL, GPD_ARRAY_IDLE);
	gpd_quiet_jobs_run(drop_one, NULL);
}

static void
unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_array *array = arg;

	pthread_mutex_lock(&lock);
	array->state = GPD_ARRAY_IDLE;
	pthread_mutex_unlock(&lock);
	gpd_quiet_jobs_run(drop_one, NULL);
}

CUresult
gpd_array_release(struct gpd_session *session, struct gpd_array *array)
{
	if (--array->users > 0)
		return CUDA_SUCCESS;
	leave(array, session, GPD_ARRAY_LEAVING);
	/* If there can be no marker the context is lost, or close to it: it goes with the session.
	 */
	return gpd_wait_add_all(session, NULL, unused, array);
}

/* One that was given back and that the driver does not have yet, of this session or of one that has
 * ended: programs that make and destroy the same array again and again need no second one. */
static struct gpd_array *
take_back(struct gpd_session *session, const struct gp_array_shape *shape, int device)
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

static CUresult
obtain(void *array)
{
	return gpd_array_obtain(array);
}

static CUresult
fill(struct gpd_session *session, struct gpd_array *array, bool granted)
{
	CUresult result = granted ? gpd_grant_obtain(session, array->device, obtain, array)
				  : gpd_array_obtain(array);

	/* What has been given back may still have been on its way out. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && (session->account.give_back(&session->account) ||
						   gpd_array_wait_gone(session, array->device)))
		result = gpd_array_obtain(array);
	if (result != CUDA_SUCCESS)
		return result;
	/* Another session may have had this memory; of a sparse one it comes later, zeroed. */
	result = gpd_array_is_sparse(array) ? gpd_tiles_tiling(array) : gpd_array_zero(array);
	if (result != CUDA_SUCCESS)
		gpd_array_drop(array);
	return result;
}

static CUresult
make_new(struct gpd_session *session, const struct gp_array_shape *shape, int device, uint64_t size,
	 bool granted, struct gpd_array **array_p)
{
	struct gpd_array *array = calloc(1, sizeof(*array));
	CUresult result;

	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->shape = *shape;
	array->device = device;
	array->charged = size;
	result = fill(session, array, granted);
	if (result == CUDA_SUCCESS)
		*array_p = array;
	else
		free(array);
	return result;
}

/* One of a session that has ended, zeroed, or a new one.  So much is counted for it. */
static CUresult
make(struct gpd_session *session, const struct gp_array_shape *shape, int device, uint64_t size,
     bool granted, struct gpd_array **array_p)
{
	CUresult result = CUDA_SUCCESS;

	*array_p = take_back(NULL, shape, device);
	if (!*array_p) {
		result = make_new(session, shape, device, size, granted, array_p);
	} else {
		result = gpd_array_zero(*array_p);
		if (result != CUDA_SUCCESS)
			bury(*array_p);
	}
	return result;
}

/* The session's own, which has been paid for and shows it nothing that it has not seen, or one that
 * counts from now on: granted says that it does already. */
static CUresult
find_or_make(struct gpd_session *session, const struct gp_array_shape *shape, int device,
	     bool granted, struct gpd_array **array_p)
{
	uint64_t size = gp_array_footprint(shape);
	CUresult result = CUDA_SUCCESS;

	*array_p = take_back(session, shape, device);
	if (*array_p) {
		gpd_account_free(&session->account, device, granted ? size : 0);
		return CUDA_SUCCESS;
	}
	if (!granted)
		result = gpd_account_allocate(&session->account, device, size);
	if (result != CUDA_SUCCESS)
		return result;
	result = make(session, shape, device, size, granted, array_p);
	if (result != CUDA_SUCCESS)
		gpd_account_free(&session->account, device, size);
	return result;
}

static CUresult
create(struct gpd_session *session, uint32_t name, int device, const struct gp_array_shape *shape,
       bool granted)
{
	struct gpd_array *array;
	CUresult result;

	if (!gpd_device_get(device) || !gpd_account_may_use(&session->account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = gp_array_check(shape);
	if (result == CUDA_SUCCESS && session->array_count == GP_ARRAYS_MAX)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS && granted &&
	    !gpd_grant_take(session, device, gp_array_footprint(shape)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = find_or_make(session, shape, device, granted, &array);
	if (result != CUDA_SUCCESS)
		return result;
	array->users = 1;
	result = gpd_session_name(session, GPD_KIND_ARRAY, name, &array->name);
	if (result == CUDA_SUCCESS) {
		session->array_count++;
	} else {
		gpd_account_free(&session->account, array->device, array->charged);
		bury(array);
	}
	return result;
}

CUresult
gpd_gpArrayCreate(struct gpd_session *session, const struct gp_args_gpArrayCreate *args)
{
	const struct gp_array_shape shape = { GP_ARRAY_SHAPE(args) };

	return create(session, args->array, args->device, &shape, false);
}

CUresult
gpd_gpArrayMake(struct gpd_session *session, const struct gp_args_gpArrayMake *args)
{
	const struct gp_array_shape shape = { GP_ARRAY_SHAPE(args) };

	return create(session, args->array, args->device, &shape, true);
}

CUresult
gpd_gpArrayDestroy(struct gpd_session *session, const struct gp_args_gpArrayDestroy *args)
{
	struct gpd_array *array = gpd_array_get(session, args->array);

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_handle_remove(&session->handles, &array->name);
	session->array_count--;
	return gpd_array_release(session, array);
}

uint64_t
gpd_array_leaving_size(const struct gpd_session *session, int device)
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
find_of(const struct gpd_session *session) GP_LOCKED(lock)
{
	struct gpd_array *array;

	LL_SEARCH_SCALAR(leaving, array, session, session);
	return array;
}

/* One that is never known to be out of use is left. */
bool
gpd_array_give_back(struct gpd_session *session)
{
	const struct gpd_array *array;
	bool any = false;

	pthread_mutex_lock(&lock);
	while ((array = find_of(session))) {
		enum gpd_array_state state = array->state;
		int device = array->device;

		any = true;
		if (state == GPD_ARRAY_GOING) {
			pthread_cond_wait(&gone, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		if (state == GPD_ARRAY_LEAVING && !gpd_wait_none(session))
			gpd_wait_oldest(session);
		else if (state == GPD_ARRAY_LEAVING || !drop_all(session, session, device))
			return any;
		pthread_mutex_lock(&lock);
	}
	pthread_mutex_unlock(&lock);
	return any;
}

bool
gpd_array_wait_gone(struct gpd_session *session, int device)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = find_idle(NULL, device) != NULL;
	pthread_mutex_unlock(&lock);
	return any && drop_all(session, NULL, device);
}

void
gpd_array_release_at_end(struct gpd_session *session, struct gpd_array *array)
{
	if (--array->users > 0)
		return;
	discharge(session, array);
	bury(array);
}

void
gpd_array_forget(struct gpd_session *session)
{
	struct gpd_array *array;
	unsigned int count = 0;
	uint32_t at = 0;

	while ((array = gpd_handle_next(&session->handles, GPD_KIND_ARRAY, &at))) {
		gpd_handle_remove(&session->handles, &array->name);
		gpd_array_release_at_end(session, array);
	}
	pthread_mutex_lock(&lock);
	while ((array = find_of(session))) {
		if (array->state == GPD_ARRAY_GOING) {
			pthread_cond_wait(&gone, &lock);
			continue;
		}
		discharge(session, array);
		array->session = NULL;
		array->state = GPD_ARRAY_IDLE;
		count++;
	}
	pthread_mutex_unlock(&lock);
	while (count-- > 0)
		gpd_quiet_jobs_run(drop_one, NULL);
}
