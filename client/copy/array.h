/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of the application: plain ones, mipmapped ones, and levels of these.  A level is an array
 * to the application; on the wire it is its mipmapped array and a number.  What they look like is
 * answered from here.  Any thread.  An array is not counted: its memory stays that of an array
 * (client/base/handle.h), and its levels are looked at under a lock.
 */
#ifndef GPC_ARRAY_H
#define GPC_ARRAY_H

#include "client/base/handle.h"
#include "protocol/array_tiles.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;

struct gpc_array {
	struct gpc_handle handle; /* of a level it is no name on the wire */
	struct gpc_context *context;
	struct gpc_array *whole; /* of a level: the mipmapped array; else itself */
	uint32_t level;
	struct gp_array_shape shape;   /* of a level: its own */
	struct gp_array_tiling tiling; /* of a sparse one, but not of its levels */
	struct gpc_array **levels;     /* of a mipmapped array: those that were asked for */
	atomic_bool destroyed;         /* the program has destroyed it, and it is kept */
};

/* CUDA_ERROR_INVALID_HANDLE: it is none, or has been destroyed. */
CUresult gpc_array_lookup(CUarray hArray, struct gpc_array **array_p);
CUresult gpc_array_lookup_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* The same, as the start of a call. */
CUresult gpc_array_enter(CUarray hArray, struct gpc_array **array_p);
CUresult gpc_array_enter_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* As CUDA tells what it looks like. */
CUDA_ARRAY_DESCRIPTOR gpc_array_get_descriptor(const struct gpc_array *array);
CUDA_ARRAY3D_DESCRIPTOR gpc_array_get_descriptor_3d(const struct gpc_array *array);

/* Those of a context that is being destroyed or reset; before gpContextDestroy is posted. */
void gpc_array_drop_context(struct gpc_context *context);

#endif /* GPC_ARRAY_H */
