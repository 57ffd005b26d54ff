/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/context/green.h"

#include "softgpu/driver/object.h"
#include "softgpu/driver/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>

struct gs_green {
	struct gs_object object;
	struct gs_object context; /* its handle is the CUcontext */
	unsigned long long id;
	int device;
	int gone; /* atomic */
	struct gs_set set;
	uint16_t multiprocessors[GS_MULTIPROCESSORS_MAX];
	struct gs_partition partition;
	/* Each keeps a reference to the green context, and is closed when it is destroyed. */
	struct gs_stream *standard; /* the NULL stream */
	struct gs_stream *joins;    /* for events that represent all its streams */
	struct gs_stream *gate;     /* waits for events that all its streams must wait for */
};

struct gs_green *
gs_green_get(CUgreenCtx handle)
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

int
gs_green_device(const struct gs_green *green)
{
	return green->device;
}

CUcontext
gs_green_context(const struct gs_green *green)
{
	return (CUcontext)&green->context;
}

const struct gs_set *
gs_green_set(const struct gs_green *green)
{
	return &green->set;
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

struct gs_stream *
gs_green_joins(const struct gs_green *green)
{
	return green->joins;
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

struct gs_green *
gs_green_create(int device, const struct gs_set *set)
{
	static unsigned long long ids = 1ull << 32;
	struct gs_green *green = calloc(1, sizeof(*green));

	if (!green)
		return NULL;
	gs_object_init(&green->object, GS_KIND_GREEN, NULL, green_free);
	gs_object_init(&green->context, GS_KIND_GREEN_CONTEXT, &green->object, NULL);
	green->id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
	green->device = device;
	green->set = *set;
	green->partition.multiprocessors = green->multiprocessors;
	for (unsigned int i = 0; i < GS_MULTIPROCESSORS_MAX; i++) {
		if (gs_set_has(set, i))
			green->multiprocessors[green->partition.count++] = (uint16_t)i;
	}
	green->standard =
		gs_stream_create(green, green->device, CU_STREAM_DEFAULT, GS_PRIORITY_LEAST);
	green->joins =
		gs_stream_create(green, green->device, CU_STREAM_NON_BLOCKING, GS_PRIORITY_LEAST);
	green->gate =
		gs_stream_create(green, green->device, CU_STREAM_NON_BLOCKING, GS_PRIORITY_LEAST);
	if (!green->standard || !green->joins || !green->gate) {
		close_streams(green);
		gs_green_put(green);
		return NULL;
	}
	gs_object_publish(&green->object);
	gs_object_publish(&green->context);
	return green;
}

bool
gs_green_end(struct gs_green *green)
{
	if (!gs_object_retire(green, GS_KIND_GREEN))
		return false;
	(void)gs_object_retire(&green->context, GS_KIND_GREEN_CONTEXT);
	__atomic_store_n(&green->gone, 1, __ATOMIC_RELEASE);
	close_streams(green);
	gs_green_put(green);
	return true;
}

CUresult
gs_green_stream_create(struct gs_green *green, unsigned int flags, int priority, CUstream *handle)
{
	struct gs_stream *stream = gs_stream_create(green, green->device, flags, priority);
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
