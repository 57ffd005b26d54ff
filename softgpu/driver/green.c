/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/green.h"

#include "softgpu/driver/event.h"
#include "softgpu/driver/object.h"
#include "softgpu/driver/stream.h"

#include <pthread.h>
#include <stdlib.h>

struct gs_green {
	struct gs_object object;
	struct gs_object context; /* whose handle is the CUcontext */
	unsigned long long id;
	int gone; /* atomic */
	struct gs_set set;
	uint16_t multiprocessors[GS_MULTIPROCESSORS_MAX];
	struct gs_partition partition;
	/* Each keeps the green context, and goes when that is destroyed. */
	struct gs_stream *standard; /* the NULL stream */
	struct gs_stream *joins;    /* for events that stand for all its streams */
	struct gs_stream *gate;     /* waits for what all its streams have to wait for */
};

static struct gs_green *
get(CUgreenCtx handle)
{
	return gs_object_get(handle, GS_KIND_GREEN);
}

struct gs_green *
gs_green_ref(struct gs_green *green)
{
	if (green)
		gs_object_ref(&green->object);
	return green;
}

void
gs_green_put(struct gs_green *green)
{
	if (green)
		gs_object_put(&green->object);
}

struct gs_green *
gs_green_of_context(CUcontext ctx)
{
	struct gs_object *object;

	if (!ctx || gs_context_is_primary(ctx))
		return NULL;
	object = gs_object_get(ctx, GS_KIND_GREEN_CONTEXT);
	return object ? (struct gs_green *)object->owner : NULL;
}

bool
gs_green_is_context(CUcontext ctx)
{
	struct gs_green *green = gs_green_of_context(ctx);

	gs_green_put(green);
	return green != NULL;
}

CUresult
gs_green_id(CUcontext ctx, unsigned long long *id)
{
	struct gs_green *green = gs_green_of_context(ctx);

	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*id = green->id;
	gs_green_put(green);
	return CUDA_SUCCESS;
}

bool
gs_green_is_gone(const struct gs_green *green)
{
	return __atomic_load_n(&green->gone, __ATOMIC_ACQUIRE);
}

struct gs_partition *
gs_green_partition(struct gs_green *green)
{
	return &green->partition;
}

struct gs_stream *
gs_green_default_stream(const struct gs_green *green)
{
	return green->standard;
}

static void
green_free(struct gs_object *object)
{
	free(object);
}

static void
close_streams(struct gs_green *green)
{
	struct gs_stream *const streams[] = { green->standard, green->joins, green->gate };

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		if (streams[i])
			gs_stream_close(streams[i]);
	}
}

static struct gs_green *
green_create(const struct gs_set *set)
{
	static unsigned long long ids = 1ull << 32;
	struct gs_green *green = calloc(1, sizeof(*green));

	if (!green)
		return NULL;
	gs_object_init(&green->object, GS_KIND_GREEN, NULL, green_free);
	gs_object_init(&green->context, GS_KIND_GREEN_CONTEXT, &green->object, NULL);
	green->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	green->set = *set;
	green->partition.multiprocessors = green->multiprocessors;
	for (unsigned int i = 0; i < GS_MULTIPROCESSORS_MAX; i++) {
		if (gs_set_has(set, i))
			green->multiprocessors[green->partition.count++] = (uint16_t)i;
	}
	green->standard = gs_stream_create(green, CU_STREAM_DEFAULT, GS_PRIORITY_LEAST);
	green->joins = gs_stream_create(green, CU_STREAM_NON_BLOCKING, GS_PRIORITY_LEAST);
	green->gate = gs_stream_create(green, CU_STREAM_NON_BLOCKING, GS_PRIORITY_LEAST);
	if (green->standard && green->joins && green->gate)
		return green;
	close_streams(green);
	gs_green_put(green);
	return NULL;
}

CUresult CUDAAPI
cuGreenCtxCreate(CUgreenCtx *handle, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	CUresult r = gs_check_device(dev);
	struct gs_green *green;
	struct gs_set set;
	CUcontext primary;

	if (!r)
		r = gs_failure();
	if (!r && (!handle || flags != CU_GREEN_CTX_DEFAULT_STREAM))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = gs_resources_get(desc, &set);
	if (!r)
		r = cuDevicePrimaryCtxRetain(&primary, dev);
	if (r)
		return r;
	green = green_create(&set);
	if (!green) {
		(void)cuDevicePrimaryCtxRelease_v2(dev);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_object_publish(&green->object);
	gs_object_publish(&green->context);
	*handle = (CUgreenCtx)green;
	return CUDA_SUCCESS;
}

/* What its streams were given is done first. */
CUresult CUDAAPI
cuGreenCtxDestroy(CUgreenCtx handle)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	green = get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	(void)gs_stream_synchronize_all(green);
	/* Somebody else may have been faster. */
	if (gs_object_retire(handle, GS_KIND_GREEN)) {
		(void)gs_object_retire(&green->context, GS_KIND_GREEN_CONTEXT);
		__atomic_store_n(&green->gone, 1, __ATOMIC_RELEASE);
		close_streams(green);
		(void)cuDevicePrimaryCtxRelease_v2(0);
		gs_green_put(green);
	}
	gs_green_put(green);
	return gs_failure();
}

CUresult CUDAAPI
cuCtxFromGreenCtx(CUcontext *ctx, CUgreenCtx handle)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	green = get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ctx = (CUcontext)&green->context;
	gs_green_put(green);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuGreenCtxGetDevResource(CUgreenCtx handle, CUdevResource *resource, CUdevResourceType type)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	green = get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_resource_fill(resource, &green->set, type);
	gs_green_put(green);
	return r;
}

CUresult CUDAAPI
cuCtxGetDevResource(CUcontext ctx, CUdevResource *resource, CUdevResourceType type)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (r)
		return r;
	if (gs_context_is_primary(ctx))
		return cuDeviceGetDevResource(0, resource, type);
	green = gs_green_of_context(ctx);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_resource_fill(resource, &green->set, type);
	gs_green_put(green);
	return r;
}

CUresult
gs_green_stream_create(struct gs_green *green, unsigned int flags, int priority, CUstream *handle)
{
	struct gs_stream *stream = gs_stream_create(green, flags, priority);
	CUresult r;

	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = gs_stream_follow(stream, green->gate);
	if (r) {
		gs_stream_close(stream);
		return r;
	}
	gs_stream_publish(stream, handle);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuGreenCtxStreamCreate(CUstream *handle, CUgreenCtx green_handle, unsigned int flags, int priority)
{
	CUresult r = gs_enter_device();
	struct gs_green *green;

	if (!r)
		r = gs_failure();
	if (r)
		return r;
	if (!handle || flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	green = get(green_handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_green_stream_create(green, flags, priority, handle);
	gs_green_put(green);
	return r;
}

CUresult CUDAAPI
cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	*green = (CUgreenCtx)gs_stream_green(stream);
	gs_stream_put(stream);
	return CUDA_SUCCESS;
}

/* Before work for a whole context. */
static CUresult
enter_working(void)
{
	CUresult r = gs_enter_device();

	return r ? r : gs_failure();
}

CUresult CUDAAPI
cuGreenCtxRecordEvent(CUgreenCtx handle, CUevent event)
{
	CUresult r = enter_working();
	struct gs_green *green;

	if (r)
		return r;
	green = get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_stream_join(green->joins, green);
	if (!r)
		r = gs_event_record(event, green->joins);
	gs_green_put(green);
	return r;
}

/* All streams of a context: of the primary one also those of its green contexts. */
static CUresult
record_context(const struct gs_green *green, CUevent event)
{
	struct gs_stream *joins = gs_stream_create(NULL, CU_STREAM_NON_BLOCKING, GS_PRIORITY_LEAST);
	CUresult r;

	if (!joins)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = gs_stream_join(joins, green);
	if (!r)
		r = gs_event_record(event, joins);
	gs_stream_close(joins);
	return r;
}

CUresult CUDAAPI
cuCtxRecordEvent(CUcontext ctx, CUevent event)
{
	CUresult r = enter_working();
	struct gs_green *green;

	if (r)
		return r;
	green = gs_green_of_context(ctx);
	if (!green && !gs_context_is_primary(ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	r = record_context(green, event);
	gs_green_put(green);
	return r;
}

static CUresult
wait_for_event(struct gs_stream *stream, void *event)
{
	return gs_event_wait(event, stream);
}

CUresult CUDAAPI
cuGreenCtxWaitEvent(CUgreenCtx handle, CUevent event)
{
	CUresult r = enter_working();
	struct gs_green *green;

	if (r)
		return r;
	green = get(handle);
	if (!green)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = gs_stream_each(green, wait_for_event, event);
	gs_green_put(green);
	return r;
}
