/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded image of device code: the content of a CUmodule or a CUlibrary.
 *
 * A load selects the part of the code that the daemon's GPU can use, identifies it by its SHA-256,
 * and sends it if the daemon does not have it. The daemon replies with the list of kernels. After
 * that, names, parameter layouts and attributes are known without a query. An image belongs to one
 * daemon; a library has one image per daemon, which are each other's twins.
 *
 * Ownership: the library or module that loaded the image owns it, until gpc_image_unload(); an
 * image owns its twin. An image must not be unloaded while another thread uses it (module.h).
 * Threads: any thread may call, except where noted.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
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

/* Maximum number of cached replies of an image. */
#define GPC_IMAGE_ANSWERS_MAX 4096

#define GPC_SHA256_SIZE 32

/* A texture or surface reference of an image (texture_reference.h). */
struct gpc_texture_reference;

/* Handlers of texture_reference.c, which launch.c and image.c call without depending on it. */
struct gpc_texture_reference_calls {
	/* Called before a launch: binds each reference to the resource that it is set to. Returns
	 * CUDA_SUCCESS or the error of the first reference that cannot be bound. */
	CUresult (*bind_references)(const struct gpc_image *image, struct gpc_context *context);
	/* Called before the image is unloaded: destroys the references, and the daemon's objects to
	 * which they are bound. */
	void (*drop_references)(const struct gpc_image *image);
};

/* Handlers of managed/managed_variable.h, which image.c calls without depending on it. `image` is
 * the ID of the image's handle. */
struct gpc_image_variable_calls {
	/* Called when the program first requests the address of a managed variable of the image in
	 * the context; again on the next request if it failed. Returns CUDA_SUCCESS or
	 * CUDA_ERROR_OUT_OF_MEMORY. */
	CUresult (*add)(struct gpc_context *context, uint64_t address, uint64_t size,
			uint32_t image);
	/* Called before the image is unloaded: drops its managed variables. */
	void (*drop_image)(uint32_t image);
};
/* Registers the handlers, a static struct. Called once, while the library is loaded, before any
 * image exists. */
void gpc_image_set_variable_calls(const struct gpc_image_variable_calls *calls);

/* The value that a kernel attribute had before the program first set it, which it also has in a new
 * load of the same image. An element of a list that the image owns. */
struct gpc_image_setting {
	struct gpc_image_setting *next;
	uint32_t kernel; /* index of the kernel in the image's list of kernels */
	CUfunction_attribute attribute;
	bool known; /* `value` is valid; false: the value was unknown and is queried again */
	int32_t value;
};

/* Frees a list of settings. Accepts NULL. */
static inline void
gpc_image_settings_free(struct gpc_image_setting *settings)
{
	while (settings) {
		struct gpc_image_setting *next = settings->next;

		free(settings);
		settings = next;
	}
}

/* A loaded image, or one that is being loaded. */
struct gpc_image {
	struct gpc_handle handle;  /* its ID is the image's ID in messages to the daemon */
	struct gpc_device *device; /* the device on which the image is loaded */
	/* its kernels, as the daemon reported them, owned; NULL until the image is loaded, and
	 * after it is unloaded if image_preload.c has taken them over */
	struct gp_image_info *info;
	struct gp_image_variables *variables; /* variables of the code, parsed from the image
						 itself; NULL until it is loaded */
	struct gpc_function_list kernels;     /* CUkernel objects */
	/* variables whose address is known, owned; guarded by lock */
	struct gpc_image_global *globals;
	struct gpc_query_cache answers; /* cached replies of the daemon to queries about its kernels
					   (launch_shape.h) */
	atomic_uint_fast64_t
		cache_changes; /* number of changes to the preferred cache configuration of a
				  kernel, part of the keys in `answers` */
	struct gpc_texture_reference *references; /* list that belongs to texture_reference.c;
						     guarded by the lock there */
	const struct gpc_texture_reference_calls
		*reference_calls; /* NULL: the image has no references */
	/* guards globals, settings, the lists of functions, and the kernels' attributes */
	pthread_mutex_t lock;
	struct gpc_image_loading
		*loading; /* asynchronous load, owned; NULL: none, or gpc_image_await() has
			     finished. Accessed atomically. */
	CUresult loaded; /* result of the asynchronous load, valid when `loading` is NULL; otherwise
			    CUDA_SUCCESS */
	void *owner;     /* token of its CUlibrary; NULL for the image of a module */
	struct gpc_image *twin; /* image of a library: the same image in the session with the next
				   daemon, owned; NULL: the last one */
	struct gpc_image_setting
		*settings; /* utlist of the settings that the program changed; guarded by lock */
	uint8_t sha256[GPC_SHA256_SIZE]; /* SHA-256 of the loaded code */
	uint64_t size;                   /* size of the loaded code in bytes */
	bool plain; /* loaded without JIT options, so that the same code can be loaded again without
		       waiting for a reply */
	struct gpc_image *prev, *next; /* links in the list of loaded images in image_preload.c, if
					  `listed` is set */
	bool listed;
};

/* JIT options as the application passed them: `count` keys and values (jit_options.h). */
struct gpc_jit_options {
	const CUjit_option *keys;
	void **values;
	unsigned int count;
};

/* Set when the first image is loaded whose device code may call printf(); never reset. */
extern atomic_bool gpc_image_any_uses_printf;

/*
 * Loads an image on the context's device. options not NULL: checked by gpc_jit_options_check(); its
 * logs are filled; the call waits for the reply, unless the daemon is known to have the image
 * (image_preload.h). options NULL (asynchronous load): for code that a compiler embedded in the
 * program; the call does not wait for the reply, so that several loads cost one round trip, and the
 * caller calls gpc_image_await() before it uses kernels or variables of the image. source: as for
 * cuLibraryLoadData() and cuModuleLoadData(); it is not used after the return. On success the
 * caller owns *image_p, and gpc_image_unload() frees it; on failure *image_p is unchanged. Errors:
 * CUDA_ERROR_INVALID_VALUE: source is NULL; CUDA_ERROR_NO_BINARY_FOR_GPU: no code for the device;
 * CUDA_ERROR_INVALID_IMAGE: malformed, or the daemon's description contradicts the image;
 * CUDA_ERROR_OUT_OF_MEMORY; errors of the daemon's driver, such as CUDA_ERROR_INVALID_PTX; errors
 * of call.h.
 */
CUresult gpc_image_load(struct gpc_context *context, const void *source,
			const struct gpc_jit_options *options, struct gpc_image **image_p);
/* Blocks until an asynchronous load is finished, and returns its result; sends the code if the
 * daemon does not have it. Returns at once if the load was finished before. Errors: as
 * gpc_image_load(). After an error the caller still owns the image, and unloads it. */
CUresult gpc_image_await(struct gpc_image *image);
/* Reads a file for gpc_image_load(). On success the caller frees *source_p with free(); on failure
 * *source_p is undefined and nothing needs to be freed. Errors: CUDA_ERROR_INVALID_VALUE if path is
 * NULL; CUDA_ERROR_FILE_NOT_FOUND if the file cannot be opened; CUDA_ERROR_INVALID_IMAGE if it is
 * empty, too large or cannot be read; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_image_read_file(const char *path, void **source_p);
/* Unloads the image and its twins in the daemons, and frees them with their CUkernel objects.
 * Modules of the image must have been destroyed before. Posts the calls; waits only for an
 * asynchronous load that is not finished. */
void gpc_image_unload(struct gpc_image *image);

/* Loads the image of a library also in the sessions with all other daemons, because a library
 * belongs to no context; waits for the replies as gpc_image_load() does, and links the results as
 * twins. source, options: as for gpc_image_load(), but options is not NULL. If the load in a
 * session fails, the error is ignored, and the library's kernels cannot be used with that daemon.
 * Called before another thread knows the image. */
void gpc_image_load_twins(struct gpc_image *image, const void *source,
			  const struct gpc_jit_options *options);
/* Returns the image or its twin that is loaded in this session, borrowed, or NULL if there is none.
 * image: the library's first image, or the image of a module. May be called before the image is
 * loaded. */
struct gpc_image *gpc_image_get_twin(struct gpc_image *image, const struct gpc_session *session);

/* Callback unload() of struct gpc_context_part (client/context/context.h), called when a context is
 * destroyed or reset: invalidates the addresses of the variables in this context, and the values of
 * settable attributes of all kernels on its device. They are queried again when they are needed. */
void gpc_image_drop_context(struct gpc_context *context);

/* Returns the index of the kernel of this name in image->info, or -1 if there is none or the
 * image's code does not contain it (`absent` of protocol/image_info.h). The image must be
 * loaded. */
int64_t gpc_image_find_kernel(const struct gpc_image *image, const char *name);
/* Returns whether the image has a managed variable of this name. Returns false if the image is in a
 * form that is not parsed (image/image_variables.h), or is not loaded yet. */
bool gpc_image_is_managed(const struct gpc_image *image, const char *name);
/* Stores address and size in bytes of a variable in the context. image: as for
 * gpc_image_get_twin(); it must be loaded. Either pointer may be NULL. The first request of a
 * variable in a context may wait for a reply of the daemon. After an error the results are
 * unchanged. Errors: CUDA_ERROR_NOT_FOUND: no such variable, or the image is not loaded in the
 * context's session; CUDA_ERROR_INVALID_IMAGE: the daemon's information contradicts the image or
 * this process's memory map; CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_CONTEXT_IS_DESTROYED: another
 * thread has reset the context; errors of call.h. */
CUresult gpc_image_get_global(struct gpc_image *image, struct gpc_context *context,
			      const char *name, CUdeviceptr *address_p, size_t *size_p);

#endif /* GPC_IMAGE_H */
