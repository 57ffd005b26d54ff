/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/context/context_limit.h"

#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/session/session.h"
#include "server/worker/session/worker_retirement.h"

#include <stdlib.h>
#include <utlist.h>

/* No session may take more than this part of a device by one limit. */
#define PART 8
/* Maximum of the limits that are numbers. */
#define COUNT_MAX (UINT64_C(1) << 16)

_Static_assert(CU_LIMIT_MAX <= 64, "a set of limits is 64 bits");

/* The value that a session needs. */
struct gpd_limit_request {
	struct gpd_limit_request *prev, *next; /* gpd_device.limit_requests; limit_lock */
	const struct gpd_session *session;
	CUlimit limit;
	uint64_t value;
};

/* The driver allocates the stacks of all threads that fit on the device at once. */
static uint64_t
device_get_threads(const struct gpd_device *device)
{
	return (uint64_t)device->multiprocessors * (uint64_t)device->threads_per_multiprocessor;
}

/* Whether the value would leave too little for other sessions or the driver. */
static bool
is_too_much(const struct gpd_device *device, CUlimit limit, uint64_t value)
{
	uint64_t threads = device_get_threads(device);

	if (limit == CU_LIMIT_STACK_SIZE)
		return threads && value > device->memory / PART / threads;
	if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE)
		return value > device->memory / PART;
	return value > COUNT_MAX;
}

/* Bytes of the device that the value takes; it is not too much. */
static uint64_t
limit_get_memory(const struct gpd_device *device, CUlimit limit, uint64_t value)
{
	if (limit == CU_LIMIT_STACK_SIZE)
		return value * device_get_threads(device);
	return limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ? value : 0;
}

/* The device's limit_lock must be held. NULL: the session has not requested the limit. */
static struct gpd_limit_request *
request_find(const struct gpd_device *device, const struct gpd_session *session, CUlimit limit)
{
	struct gpd_limit_request *request = device->limit_requests;

	while (request && (request->session != session || request->limit != limit))
		request = request->next;
	return request;
}

/* The least value that the sessions allow. The device's limit_lock must be held. */
static uint64_t
limit_get_needed(const struct gpd_device *device, CUlimit limit)
{
	uint64_t needed = device->own_limits[limit];

	for (const struct gpd_limit_request *r = device->limit_requests; r; r = r->next) {
		if (r->limit == limit && r->value > needed)
			needed = r->value;
	}
	return needed;
}

/* Returns the value that the session has requested so far, or else the worker's own. */
static uint64_t
request_get_value(struct gpd_device *device, const struct gpd_session *session, CUlimit limit)
{
	const struct gpd_limit_request *request;
	uint64_t value;

	pthread_mutex_lock(&device->limit_lock);
	request = request_find(device, session, limit);
	value = request ? request->value : device->own_limits[limit];
	pthread_mutex_unlock(&device->limit_lock);
	return value;
}

/* A value that is not above the worker's own ends the request. Returns false if out of memory. */
static bool
request_set_value(struct gpd_device *device, const struct gpd_session *session, CUlimit limit,
		  uint64_t value)
{
	const bool needed = value > device->own_limits[limit];
	struct gpd_limit_request *request;
	bool stored = true;

	pthread_mutex_lock(&device->limit_lock);
	request = request_find(device, session, limit);
	if (!request && needed) {
		request = calloc(1, sizeof(*request));
		stored = request != NULL;
		if (stored)
			DL_APPEND(device->limit_requests, request);
	}
	if (request && needed) {
		request->session = session;
		request->limit = limit;
		request->value = value;
	} else if (request) {
		DL_DELETE(device->limit_requests, request);
		free(request);
	}
	pthread_mutex_unlock(&device->limit_lock);
	return stored;
}

/* The device must be current. */
static CUresult
limit_raise(struct gpd_session *session, int ordinal, CUlimit limit, uint64_t value)
{
	struct gpd_device *device = gpd_device_get(ordinal);
	CUresult result = CUDA_SUCCESS;

	/* The session's request keeps a limit that is high enough. */
	if (atomic_load(&device->limits[limit]) >= value)
		return CUDA_SUCCESS;
	if (!gpd_session_quiesce_begin(session, ordinal))
		result = CUDA_ERROR_DEINITIALIZED;
	pthread_mutex_lock(&device->limit_lock);
	if (result == CUDA_SUCCESS && value > device->limits[limit]) {
		result = gpd_driver.cuCtxSetLimit(limit, value);
		if (result == CUDA_SUCCESS)
			device->limits[limit] = value;
	}
	pthread_mutex_unlock(&device->limit_lock);
	gpd_session_quiesce_end(session, ordinal);
	return result;
}

CUresult
gpd_context_limit_request(struct gpd_session *session, int ordinal, CUlimit limit, uint64_t value)
{
	struct gpd_device *device = gpd_device_get(ordinal);
	CUresult result = gpd_device_enter(ordinal);
	uint64_t before, more;

	if (result != CUDA_SUCCESS)
		return result;
	if (is_too_much(device, limit, value))
		return CUDA_ERROR_OUT_OF_MEMORY;
	before = request_get_value(device, session, limit);
	if (value <= before)
		return CUDA_SUCCESS;
	more = limit_get_memory(device, limit, value) - limit_get_memory(device, limit, before);
	result = gpd_account_allocate(&session->account, ordinal, more);
	if (result != CUDA_SUCCESS)
		return result;
	/* First, so that the limit is not lowered meanwhile. */
	result = request_set_value(device, session, limit, value)
			 ? limit_raise(session, ordinal, limit, value)
			 : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		(void)request_set_value(device, session, limit, before);
		gpd_account_free(&session->account, ordinal, more);
	}
	return result;
}

/* Quiescence job: the driver waits for every kernel. arg: device and limit. */
static void
limit_lower(void *arg)
{
	int ordinal = (int)((uintptr_t)arg >> 8);
	CUlimit limit = (CUlimit)((uintptr_t)arg & 255);
	struct gpd_device *device = gpd_device_get(ordinal);
	bool lowered = true;
	uint64_t needed;

	if (!gpd_quiesce_jobs_try()) {
		if (!atomic_load(&gpd_devices.lost))
			gpd_quiesce_jobs_add(limit_lower, arg);
		return;
	}
	if (gpd_device_enter(ordinal) != CUDA_SUCCESS)
		return;
	pthread_mutex_lock(&device->limit_lock);
	needed = limit_get_needed(device, limit);
	if (needed < device->limits[limit]) {
		lowered = gpd_driver.cuCtxSetLimit(limit, needed) == CUDA_SUCCESS;
		if (lowered)
			device->limits[limit] = needed;
	}
	pthread_mutex_unlock(&device->limit_lock);
	if (lowered)
		return;
	atomic_store(&gpd_devices.worn, GPD_WORN_LIMIT);
	gpd_retirement_check_idle();
}

/* Returns the limits, as bits, that need no longer be as high as they are. */
static uint64_t
requests_release(struct gpd_device *device, const struct gpd_session *session)
{
	struct gpd_limit_request *request, *next;
	uint64_t lower = 0;

	pthread_mutex_lock(&device->limit_lock);
	DL_FOREACH_SAFE(device->limit_requests, request, next)
	{
		CUlimit limit = request->limit;

		if (request->session != session)
			continue;
		DL_DELETE(device->limit_requests, request);
		free(request);
		if (limit_get_needed(device, limit) < device->limits[limit])
			lower |= UINT64_C(1) << limit;
	}
	pthread_mutex_unlock(&device->limit_lock);
	return lower;
}

void
gpd_context_limits_release(struct gpd_session *session)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		uint64_t lower = requests_release(&gpd_devices.all[i], session);

		for (uintptr_t limit = 0; lower >> limit; limit++) {
			if (lower >> limit & 1)
				gpd_quiesce_jobs_add(limit_lower,
						     (void *)((uintptr_t)i << 8 | limit));
		}
	}
}
