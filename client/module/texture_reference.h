/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references (CUtexref, CUsurfref). Those of a module belong to its image;
 * those of cuTexRefCreate() belong to the program and are not used by kernels.
 *
 * Settings are stored in the client, by functions that are generated from codegen/api/reference.h.
 * Before a launch, the client converts those references of the kernel's image that have changed to
 * texture or surface objects, and posts a call that binds them (launch.c, through
 * image->reference_calls of module/image.h).
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

/* resType of a reference to which the program has not bound a resource. */
#define GPC_TEXTURE_REFERENCE_UNBOUND ((CUresourcetype)0xff)
/* All flags of cuTexRefSetFlags(). */
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
	bool surface;                  /* a CUsurfref */
	CUDA_RESOURCE_DESC resource;   /* the resource that the program has set; resType
					  GPC_TEXTURE_REFERENCE_UNBOUND: none */
	CUDA_TEXTURE_DESC description; /* sampling settings of the program */
	CUarray_format format;         /* element format of memory that the program binds */
	int channels;                  /* components of an element */

	/* State bound in the daemon, guarded by the lock of texture_reference.c, as is `next`. The
	 * members below `context` are valid if it is not NULL. */
	struct gpc_context *context; /* context of `object`; NULL: nothing is bound */
	CUDA_RESOURCE_DESC bound_resource;
	CUDA_TEXTURE_DESC bound_description;
	unsigned long long object; /* CUtexObject or CUsurfObject, owned */
};

/* Returns the maximum anisotropy that the program has set, for cuTexRefGetMaxAnisotropy(). */
static inline int
gpc_texture_reference_anisotropy(const struct gpc_texture_reference *reference)
{
	return (int)reference->description.maxAnisotropy;
}

/* Callback unload() of struct gpc_context_part (client/context/context.h), called when a context is
 * destroyed or reset: marks all references that are bound in it as unbound. Called before
 * gpc_texture_drop_context() (array/texture.h), which destroys the objects. */
void gpc_texture_reference_drop_context(struct gpc_context *context);

#endif /* GPC_TEXTURE_REFERENCE_H */
