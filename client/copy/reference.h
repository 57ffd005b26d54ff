/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references.  A module's belong to its image and end with it; those of
 * cuTexRefCreate() are the program's, and no kernel reads them.  What is set is kept here.  At a
 * launch, those of the image that have changed since are made into texture or surface objects, and
 * the daemon is told to bind them.  Any thread may call; who sets one while another thread launches
 * keeps the order himself.
 */
#ifndef GPC_REFERENCE_H
#define GPC_REFERENCE_H

#include "client/base/handle.h"

#include <cuda.h>
#include <stdbool.h>

struct gpc_context;
struct gpc_image;

#define GPC_TEXTURE_REFERENCE_UNBOUND ((CUresourcetype)0xff)
#define GPC_TEXTURE_REFERENCE_FLAGS                                                                \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |                 \
	 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

struct gpc_texture_reference {
	struct gpc_handle handle; /* GPC_KIND_TEXREF or GPC_KIND_SURFREF */
	struct gpc_texture_reference *next;
	const struct gpc_image *image; /* NULL: the program's own */
	char *name;
	bool surface;
	CUDA_RESOURCE_DESC resource; /* resType GPC_TEXTURE_REFERENCE_UNBOUND: it is not set */
	CUDA_TEXTURE_DESC description;
	CUarray_format format;
	int channels;

	/* What it is for the daemon, under reference.c's lock; context NULL: nothing. */
	struct gpc_context *context;
	CUDA_RESOURCE_DESC bound_resource;
	CUDA_TEXTURE_DESC bound_description;
	unsigned long long object;
};

static inline int
gpc_texture_reference_anisotropy(const struct gpc_texture_reference *reference)
{
	return (int)reference->description.maxAnisotropy;
}

/* The context is being destroyed or reset; before gpc_texture_drop_context(). */
void gpc_texture_reference_drop_context(struct gpc_context *context);

#endif /* GPC_REFERENCE_H */
