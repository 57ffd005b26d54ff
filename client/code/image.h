/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loaded image of device code: what is behind a CUmodule or a CUlibrary.
 *
 * Loading sends the entries that the daemon's GPU can use, addressed by their SHA-256, and brings
 * back the kernels; from then on names, parameter layouts and attributes are answered here.  An
 * image is one daemon's; a library has one for each, which are twins.  It is owned by the library
 * or module that loaded it.  Any thread may call.
 */
#ifndef GPC_IMAGE_H
#define GPC_IMAGE_H

#include "client/base/handle.h"
#include "client/base/query_cache.h"
#include "client/code/function.h"
#include "client/code/function_list.h"
#include "client/context/context.h"
#include "protocol/image_info.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct gpc_image_global;

#define GPC_IMAGE_ANSWERS_MAX 4096

#define GPC_SHA256_SIZE 32

/* Of images whose texture or surface references the application has asked for. */
struct gpc_texture_reference;

struct gpc_texture_reference_calls {
	/* Before a launch: they become what they are set to. */
	CUresult (*bind_references)(const struct gpc_image *image, struct gpc_context *context);
	/* The image is about to be unloaded. */
	void (*drop_references)(const struct gpc_image *image);
};

/* What is done with variables that are managed memory, besides what is done with all. */
struct gpc_image_variable_calls {
	CUresult (*add)(struct gpc_context *context, uint64_t address, uint64_t size,
			uint32_t image);
	void (*drop_image)(uint32_t image);
};
/* By entry, as the library is loaded. */
void gpc_image_set_variable_calls(const struct gpc_image_variable_calls *calls);

/* What the program has set of a kernel, as it was before. */
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
	struct gpc_handle handle;  /* its name on the wire */
	struct gpc_device *device; /* where its calls go */
	struct gp_image_info *info;
	struct gp_image_variables *variables; /* as the image itself says */
	struct gpc_function_list kernels;     /* CUkernel objects */
	struct gpc_image_global *globals;
	struct gpc_query_cache answers;           /* about its kernels (shape.h) */
	atomic_uint_fast64_t cache_changes;       /* of the preferred cache of a kernel */
	struct gpc_texture_reference *references; /* client/copy/reference.c's */
	const struct gpc_texture_reference_calls *reference_calls; /* NULL: there are none */
	pthread_mutex_t lock;
	struct gpc_image_loading *loading; /* until gpc_image_await(); then NULL */
	CUresult loaded;                   /* what came of it */
	void *owner;                       /* the token of its CUlibrary; NULL for a module's */
	struct gpc_image *twin; /* of a library: the same image with the next daemon, or NULL */
	struct gpc_image_setting *settings; /* utlist; under the lock */
	uint8_t sha256[GPC_SHA256_SIZE];    /* of its bytes */
	uint64_t size;
	bool plain;                    /* loaded without options... */
	struct gpc_image *prev, *next; /* ... and in known_images.c's list: it can be again */
	bool listed;
};

struct gpc_jit_options {
	const CUjit_option *keys;
	void **values;
	unsigned int count;
};

/* Whether some image that was loaded calls printf. */
extern atomic_bool gpc_image_any_uses_printf;

/* source: what cuLibraryLoadData and cuModuleLoadData accept. */
CUresult gpc_image_load(struct gpc_context *context, const void *source,
			const struct gpc_jit_options *options, struct gpc_image **image_p);
/*
 * The same of what a compiler has put into a program, without waiting: several such images cost one
 * round trip.  What the daemon says of it gpc_image_await() returns, which comes before any other
 * use of the image.  Without options.
 */
CUresult gpc_image_load_async(struct gpc_context *context, const void *source,
			      struct gpc_image **image_p);
CUresult gpc_image_await(struct gpc_image *image);
/* What is in a file, for these; to be freed. */
CUresult gpc_image_read_file(const char *path, void **source_p);
/* Its twins, too. */
void gpc_image_unload(struct gpc_image *image);

/* A library belongs to no context: loads it with the other daemons as well.  Where that fails its
 * kernels cannot be used. */
void gpc_image_load_twins(struct gpc_image *image, const void *source,
			  const struct gpc_jit_options *options);
/* The image or the twin of it that the daemon of this session has; NULL: none. */
struct gpc_image *gpc_image_get_twin(struct gpc_image *image, const struct gpc_session *session);

/* The variables of libraries start anew when the context does, and so do settings of kernels: they
 * are asked again. */
void gpc_image_drop_context(struct gpc_context *context);

/* -1: no kernel of this name. */
int64_t gpc_image_find_kernel(const struct gpc_image *image, const char *name);
/* Whether it has a variable of this name that is managed memory. */
bool gpc_image_is_managed(const struct gpc_image *image, const char *name);
/* A variable, on the context's device; CUDA_ERROR_NOT_FOUND. */
CUresult gpc_image_get_global(struct gpc_image *image, struct gpc_context *context,
			      const char *name, CUdeviceptr *address_p, size_t *size_p);

#endif /* GPC_IMAGE_H */
