/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: a device's primary context with some of its multiprocessors, and the resources
 * that they are made of.  Their handle and the context made of it are different ones.  Streams of a
 * green context keep it in memory; destroyed, it answers CUDA_ERROR_CONTEXT_IS_DESTROYED for them.
 * Any thread may call.
 */
#ifndef GS_GREEN_H
#define GS_GREEN_H

#include "softgpu/driver/driver.h"
#include "softgpu/engine/engine.h"

struct gs_green;
struct gs_stream;

/* A set of multiprocessors. */
struct gs_set {
	uint64_t bits[GS_MULTIPROCESSORS_MAX / 64];
};

static inline bool
gs_set_has(const struct gs_set *set, unsigned int i)
{
	return set->bits[i / 64] >> i % 64 & 1;
}

static inline void
gs_set_add(struct gs_set *set, unsigned int i)
{
	set->bits[i / 64] |= (uint64_t)1 << i % 64;
}

/* What a context has, as the caller sees it. CUDA_ERROR_INVALID_RESOURCE_TYPE. */
CUresult gs_resource_fill(CUdevResource *resource, const struct gs_set *set,
			  CUdevResourceType type);
/* The multiprocessors of a descriptor. CUDA_ERROR_INVALID_VALUE: it is none. */
CUresult gs_resources_get(CUdevResourceDesc desc, struct gs_set *set);

/* One with its handles and one reference, which goes with gs_green_end(); NULL: out of memory. */
struct gs_green *gs_green_create(int device, const struct gs_set *set);
/* Its handles die and its streams close; false: somebody else was faster. */
bool gs_green_end(struct gs_green *green);

/* A new reference, or NULL: there is no such handle. */
struct gs_green *gs_green_get(CUgreenCtx handle);
/* A new reference, or NULL: not a context made of a green one that is alive. */
struct gs_green *gs_green_of_context(CUcontext ctx);
bool gs_green_is_context(CUcontext ctx);
CUresult gs_green_id(CUcontext ctx, unsigned long long *id);

/* NULL is allowed. */
struct gs_green *gs_green_ref(struct gs_green *green);
void gs_green_put(struct gs_green *green);

bool gs_green_is_gone(const struct gs_green *green);
int gs_green_device(const struct gs_green *green);
/* The context that is made of it. */
CUcontext gs_green_context(const struct gs_green *green);
const struct gs_set *gs_green_set(const struct gs_green *green);
struct gs_partition *gs_green_partition(struct gs_green *green);
/* These belong to the green context, until it is destroyed. */
struct gs_stream *gs_green_default_stream(const struct gs_green *green);
struct gs_stream *gs_green_joins(const struct gs_green *green);
CUresult gs_green_stream_create(struct gs_green *green, unsigned int flags, int priority,
				CUstream *handle);

#endif /* GS_GREEN_H */
