/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: parts of a device's primary context. A green context uses some of the device's
 * multiprocessors, and is created from resources (CUdevResource), which are sets of
 * multiprocessors.
 *
 * A green context (CUgreenCtx) and the CUcontext created from it have different handles. Streams of
 * a green context have a reference to it. After it is destroyed, calls on these streams return
 * CUDA_ERROR_CONTEXT_IS_DESTROYED.
 * Ownership: reference counted (object.h).
 * Threads: any.
 * Errors: CUresult, or NULL for lookups.
 */
#ifndef GS_GREEN_H
#define GS_GREEN_H

#include "softgpu/driver/driver.h"
#include "softgpu/engine/engine.h"

struct gs_green;
struct gs_stream;

/* A set of multiprocessors of a device: bit i is multiprocessor i. */
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

/* Fills in the description of the resources of a context whose multiprocessors are in `set`.
 * Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_RESOURCE_TYPE for an unknown type. */
CUresult gs_resource_fill(CUdevResource *resource, const struct gs_set *set,
			  CUdevResourceType type);
/* Copies the multiprocessors of a resource descriptor to *set. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_INVALID_VALUE for an unknown descriptor; *set is then unchanged. */
CUresult gs_resources_get(CUdevResourceDesc desc, struct gs_set *set);

/* Creates a green context of the device with its handles, its streams and one reference, which
 * gs_green_end() drops. Copies the set. Returns NULL if out of memory. */
struct gs_green *gs_green_create(int device, const struct gs_set *set);
/* Destroys a green context: invalidates the handles, closes its own streams and drops the creator's
 * reference. The caller needs a reference of its own. Returns true, or false if another thread has
 * already destroyed it. */
bool gs_green_end(struct gs_green *green);

/* Returns a new reference, which gs_green_put() drops. NULL: not a live green context. */
struct gs_green *gs_green_get(CUgreenCtx handle);
/* Returns a new reference to the green context of a CUcontext. NULL: not the context of a live
 * green context. */
struct gs_green *gs_green_of_context(CUcontext ctx);
/* Returns whether the handle is the context of a live green context. */
bool gs_green_is_context(CUcontext ctx);
/* Stores the context ID of cuCtxGetId() in *id. Returns CUDA_SUCCESS; or
 * CUDA_ERROR_INVALID_CONTEXT, with *id unchanged, if ctx is not the context of a live green
 * context. */
CUresult gs_green_id(CUcontext ctx, unsigned long long *id);

/* Adds a reference and returns the argument; gs_green_put() drops one. Both accept NULL and do
 * nothing then. */
struct gs_green *gs_green_ref(struct gs_green *green);
void gs_green_put(struct gs_green *green);

/* Returns whether the green context was destroyed. This and the following functions require a
 * reference; the returned objects are valid as long as the reference. */
bool gs_green_is_gone(const struct gs_green *green);
int gs_green_device(const struct gs_green *green);
/* Returns the CUcontext created from the green context. */
CUcontext gs_green_context(const struct gs_green *green);
const struct gs_set *gs_green_set(const struct gs_green *green);
/* Returns the engine's partition for launches of this green context. */
struct gs_partition *gs_green_partition(struct gs_green *green);
/* Returns the stream that replaces the default stream when the context is current. It is borrowed,
 * and closed when the green context is destroyed. */
struct gs_stream *gs_green_default_stream(const struct gs_green *green);
/* Returns the internal stream that cuCtxRecordEvent() uses: it is first made to wait for all
 * streams of the green context, and then the event is recorded on it. It is borrowed, and closed
 * when the green context is destroyed. */
struct gs_stream *gs_green_joins(const struct gs_green *green);
/* Creates a stream of the green context and publishes its handle in *handle. Returns
 * CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY; *handle is then unchanged. */
CUresult gs_green_stream_create(struct gs_green *green, unsigned int flags, int priority,
				CUstream *handle);

#endif /* GS_GREEN_H */
