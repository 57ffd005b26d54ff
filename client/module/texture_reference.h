/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references (CUtexref, CUsurfref). Those of a module belong to its image;
 * those of cuTexRefCreate() belong to the program and are not used by kernels.
 *
 * Settings are stored in the client. At a launch, the references of the image that have changed are
 * converted to texture or surface objects, and the daemon binds them.
 *
 * Ownership: a reference of a module is freed with its image, another one by cuTexRefDestroy().
 * Threads: any thread may call. A program that sets a reference while another thread launches must
 * provide the order itself.
 */
#ifndef GPC_TEXTURE_REFERENCE_H
#define GPC_TEXTURE_REFERENCE_H

#include "client/base/handle.h"

#include <cuda.h>
#include <stdbool.h>

struct gpc_context;
struct gpc_image;

#define GPC_TEXTURE_REFERENCE_UNBOUND ((CUresourcetype)0xff)
#define GPC_TEXTURE_REFERENCE_FLAGS                                                                \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |                 \
	 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP)

/* The object of a CUtexref or CUsurfref. */
struct gpc_texture_reference {
	struct gpc_handle handle; /* GPC_KIND_TEXREF or GPC_KIND_SURFREF */
	/* next reference of the same image */
	struct gpc_texture_reference *next;
	const struct gpc_image *image; /* NULL: created by cuTexRefCreate() */
	/* name of the variable in the image, owned; NULL: created by cuTexRefCreate() */
	char *name;
	bool surface;
	CUDA_RESOURCE_DESC resource; /* the resource that the program has set; resType
					GPC_TEXTURE_REFERENCE_UNBOUND: none */
	CUDA_TEXTURE_DESC description;
	CUarray_format format;
	int channels;

	/* State bound in the daemon, guarded by the lock of texture_reference.c. context: where the
	 * object exists; NULL: nothing is bound. */
	struct gpc_context *context;
	CUDA_RESOURCE_DESC bound_resource;
	CUDA_TEXTURE_DESC bound_description;
	unsigned long long object;
};

/* Returns the maximum anisotropy that the program has set. */
static inline int
gpc_texture_reference_anisotropy(const struct gpc_texture_reference *reference)
{
	return (int)reference->description.maxAnisotropy;
}

/* Marks all references in a context that is being destroyed or reset as unbound. Called before
 * gpc_texture_drop_context(), which destroys the objects. */
void gpc_texture_reference_drop_context(struct gpc_context *context);

#endif /* GPC_TEXTURE_REFERENCE_H */
