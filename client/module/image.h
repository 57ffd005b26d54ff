/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded image of device code: the content of a CUmodule or a CUlibrary.
 *
 * Loading sends the code that the daemon's GPU can use, addressed by its SHA-256, and returns the
 * list of kernels. After that, names, parameter layouts and attributes are known without a query.
 * An image belongs to one daemon; a library has one image per daemon, which are each other's twins.
 *
 * Ownership: the library or module that loaded the image owns it, until gpc_image_unload().
 * Threads: any thread may call.
 */
#ifndef GPC_IMAGE_H
#define GPC_IMAGE_H

#include "client/base/handle.h"
#include "client/base/query_cache.h"
#include "client/context/context.h"
#include "client/module/function.h"
#include "client/module/function_list.h"
#include "protocol/image_info.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct gpc_image_global;

#define GPC_IMAGE_ANSWERS_MAX 4096

#define GPC_SHA256_SIZE 32

/* Texture and surface references that the application has requested from an image. */
struct gpc_texture_reference;

struct gpc_texture_reference_calls {
	/* Called before a launch: binds each reference to the resource it is set to. */
	CUresult (*bind_references)(const struct gpc_image *image, struct gpc_context *context);
	/* Called before the image is unloaded. */
	void (*drop_references)(const struct gpc_image *image);
};

/* Additional handling of variables in managed memory. */
struct gpc_image_variable_calls {
	CUresult (*add)(struct gpc_context *context, uint64_t address, uint64_t size,
			uint32_t image);
	void (*drop_image)(uint32_t image);
};
/* Registers the handlers; called by entry/ while the library is loaded. */
void gpc_image_set_variable_calls(const struct gpc_image_variable_calls *calls);

/* The original value of a kernel attribute that the program has set. */
struct gpc_image_setting {
	struct gpc_image_setting *next;
	uint32_t kernel;
	CUfunction_attribute attribute;
	bool known;
	int32_t value;
};

static inline void
gpc_image_settings_free(struct gpc_image_setting *settings)
{
	while (settings) {
		struct gpc_image_setting *next = settings->next;

		free(settings);
		settings = next;
	}
}

struct gpc_image {
	struct gpc_handle handle;  /* its ID is the image's ID on the wire */
	struct gpc_device *device; /* the device on which the image is loaded */
	struct gp_image_info *info;
	struct gp_image_variables *variables; /* parsed from the image itself */
	struct gpc_function_list kernels;     /* CUkernel objects */
	struct gpc_image_global *globals;
	struct gpc_query_cache answers; /* cached replies about its kernels (launch_shape.h) */
	atomic_uint_fast64_t
		cache_changes; /* number of changes to the preferred cache of a kernel */
	struct gpc_texture_reference *references; /* belongs to client/module/texture_reference.c */
	const struct gpc_texture_reference_calls *reference_calls; /* NULL: no references */
	pthread_mutex_t lock;
	struct gpc_image_loading *loading; /* not NULL until gpc_image_await() has finished */
	CUresult loaded;                   /* result of loading */
	void *owner;            /* token of its CUlibrary; NULL for the image of a module */
	struct gpc_image *twin; /* of a library: the same image in the session with the next daemon;
				   or NULL */
	struct gpc_image_setting *settings; /* utlist; protected by lock */
	uint8_t sha256[GPC_SHA256_SIZE];    /* of the code that was sent */
	uint64_t size;
	bool plain; /* loaded without options, so it can be loaded again without waiting */
	struct gpc_image *prev, *next; /* in the list of image_preload.c, if listed */
	bool listed;
};

struct gpc_jit_options {
	const CUjit_option *keys;
	void **values;
	unsigned int count;
};

/* Whether any loaded image calls printf. */
extern atomic_bool gpc_image_any_uses_printf;

/* Loads an image and waits for the reply. source: as for cuLibraryLoadData() and
 * cuModuleLoadData(). Stores a new image, which the caller owns. Errors: those of the CUDA
 * functions, for example CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_INVALID_IMAGE or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_image_load(struct gpc_context *context, const void *source,
			const struct gpc_jit_options *options, struct gpc_image **image_p);
/*
 * Loads code that a compiler embedded in the program, without options and without waiting for the
 * reply, so that several loads cost one round trip. gpc_image_await() waits for the reply and
 * returns its result; it must be called before any other use of the image.
 */
CUresult gpc_image_load_async(struct gpc_context *context, const void *source,
			      struct gpc_image **image_p);
CUresult gpc_image_await(struct gpc_image *image);
/* Reads a file for gpc_image_load(). The caller frees *source_p. Errors: CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_FILE_NOT_FOUND, CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_image_read_file(const char *path, void **source_p);
/* Unloads and frees the image and its twins. */
void gpc_image_unload(struct gpc_image *image);

/* Loads the image of a library, which belongs to no context, in the sessions with all other
 * daemons. Kernels cannot be used with a daemon where this fails. */
void gpc_image_load_twins(struct gpc_image *image, const void *source,
			  const struct gpc_jit_options *options);
/* Returns the image or its twin that is loaded in this session, or NULL if there is none. */
struct gpc_image *gpc_image_get_twin(struct gpc_image *image, const struct gpc_session *session);

/* Invalidates variables and kernel settings of all images in a context that is reset. A new context
 * has new ones, so they are queried again. */
void gpc_image_drop_context(struct gpc_context *context);

/* Returns the index of the kernel of this name, or -1. */
int64_t gpc_image_find_kernel(const struct gpc_image *image, const char *name);
/* Returns whether the image has a managed variable of this name. */
bool gpc_image_is_managed(const struct gpc_image *image, const char *name);
/* Returns address and size of a variable on the context's device. Either pointer may be NULL.
 * Errors: CUDA_ERROR_NOT_FOUND; CUDA_ERROR_INVALID_IMAGE: the daemon's information contradicts the
 * image or this process's memory map; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_image_get_global(struct gpc_image *image, struct gpc_context *context,
			      const char *name, CUdeviceptr *address_p, size_t *size_p);

#endif /* GPC_IMAGE_H */
