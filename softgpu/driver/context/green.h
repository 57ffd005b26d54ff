/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: a device's primary context restricted to some of its multiprocessors, and the
 * resources from which they are created. A green context and the CUcontext created from it have
 * different handles. Streams of a green context keep a reference to it; after it is destroyed,
 * calls on them return CUDA_ERROR_CONTEXT_IS_DESTROYED.
 *
 * Ownership: reference counted.
 * Threads: any.
 * Errors: CUresult, or NULL for lookups.
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

/* Describes the resources of a context for the application. CUDA_ERROR_INVALID_RESOURCE_TYPE:
 * unknown type. */
CUresult gs_resource_fill(CUdevResource *resource, const struct gs_set *set,
			  CUdevResourceType type);
/* Returns the multiprocessors of a descriptor. CUDA_ERROR_INVALID_VALUE: invalid descriptor. */
CUresult gs_resources_get(CUdevResourceDesc desc, struct gs_set *set);

/* Creates a green context with its handles and one reference, which gs_green_end() drops. NULL: out
 * of memory. */
struct gs_green *gs_green_create(int device, const struct gs_set *set);
/* Invalidates the handles and closes the streams. Returns false if another thread has already done
 * so. */
bool gs_green_end(struct gs_green *green);

/* Returns a new reference, or NULL: unknown handle. */
struct gs_green *gs_green_get(CUgreenCtx handle);
/* Returns a new reference, or NULL: not a context of a live green context. */
struct gs_green *gs_green_of_context(CUcontext ctx);
bool gs_green_is_context(CUcontext ctx);
CUresult gs_green_id(CUcontext ctx, unsigned long long *id);

/* Accept NULL. */
struct gs_green *gs_green_ref(struct gs_green *green);
void gs_green_put(struct gs_green *green);

bool gs_green_is_gone(const struct gs_green *green);
int gs_green_device(const struct gs_green *green);
/* Returns the CUcontext created from it. */
CUcontext gs_green_context(const struct gs_green *green);
const struct gs_set *gs_green_set(const struct gs_green *green);
struct gs_partition *gs_green_partition(struct gs_green *green);
/* Owned by the green context until it is destroyed. */
struct gs_stream *gs_green_default_stream(const struct gs_green *green);
struct gs_stream *gs_green_joins(const struct gs_green *green);
CUresult gs_green_stream_create(struct gs_green *green, unsigned int flags, int priority,
				CUstream *handle);

#endif /* GS_GREEN_H */
