/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: device code that a session has loaded, with its kernels and variables.
 *
 * An image belongs to the session's handle table and names its kernels by number. Its driver
 * library may be shared with other sessions (library.h) until the image needs one of its own. The
 * library is released when all work enqueued before the unload is done.
 *
 * Ownership: the session, through its handle table. After the client has unloaded an image, the
 * thread that unloads its library frees it; the session can then reach it only through image.c's
 * list of unloaded images, under its lock.
 * Threads: executor only, except that list.
 * Errors: CUresult, unless noted.
 */
#ifndef GPD_IMAGE_H
#define GPD_IMAGE_H

#include "server/worker/image_cache/image_cache.h"
#include "server/worker/image_cache/image_scan.h"
#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_blob;
struct gpd_context;
struct gpd_function;
struct gpd_global;
struct gpd_kernel;
struct gpd_library;
struct gpd_preload;
struct gpd_session;

/*
 * The part of a session that its modules and images have.
 * Threads: the executor.  The main thread fills in the program and the first preloads before there
 * is one; images_leaving is also written by threads that unload images, uploader as image_cache.h
 * says.
 */
struct gpd_module_session {
	_Atomic unsigned int
		images_leaving;   /* unloaded by the client, and work may still use them */
	uint64_t kernels_changed; /* counts how often what an image's kernels are has changed */
	struct gpd_image_uploader uploader;
	bool has_program;             /* its client says which program it is */
	uint8_t program[32];          /* Hello.program_key */
	struct gpd_preload *preloads; /* image_preload.h: images that it is promised; utlist */
};

/* -ENOMEM. */
int gpd_module_session_create(struct gpd_session *session);
void gpd_module_session_destroy(struct gpd_session *session);

struct gpd_image {
	struct gpd_handle handle;
	struct gpd_context *context; /* in which it was loaded */
	struct gpd_blob *blob;
	struct gpd_library *library; /* NULL: a stale image could not be reloaded */
	struct gpd_library *left;    /* shared library that it used before; work may still use it */
	int *dynamic; /* per kernel and device: gpd_image_get_dynamic() plus 1; or NULL */
	struct gpd_global *globals;
	struct gpd_image_uses uses;
	uint64_t code;    /* charged to code-memory: its bytes and the driver's memory for them */
	uint64_t charged; /* charged for its variables to charged_device */
	int charged_device;
	uint64_t seen; /* bytes of its variables there that the client has looked up */
	bool stale;    /* its context was destroyed: to be reloaded before use */

	/* Set after the client's unload while the driver still has the code and variables, which
	 * are charged until the driver's unload or the session's end; image.c's lock. */
	struct gpd_image *next;
	struct gpd_session *payer;
	uint32_t leave; /* from gpd_ledger_free_begin() */
};

/* A kernel, as named on the wire, on a device. */
struct gpd_use {
	struct gpd_image *image;
	struct gpd_kernel *kernel;
	struct gpd_function *function;
	int device;
	uint32_t index;
};

/* Looks up a kernel on the device, which must be current, and loads it if necessary.
 * CUDA_ERROR_INVALID_HANDLE: no such kernel. */
CUresult gpd_image_kernel(struct gpd_session *session, uint64_t kernel, int device,
			  struct gpd_use *use);

/* The same on the device of the current call's context, which becomes current. */
CUresult gpd_image_kernel_in_context(struct gpd_session *session, uint64_t kernel,
				     struct gpd_use *use);

/* Argument decoding for generated calls: the driver's function of a kernel. */
CUresult gpd_function_get(struct gpd_session *session, uint64_t kernel, CUfunction *function_p);

/* Maximum dynamic shared memory, in bytes, of the session's launches of the kernel. INT_MAX if the
 * image has its own library: the driver checks it then. */
int gpd_image_get_dynamic(const struct gpd_use *use);
/* Sets that maximum for the session's launches. CUDA_ERROR_INVALID_VALUE: negative, or more than
 * the driver allows. */
CUresult gpd_image_set_dynamic(const struct gpd_use *use, int bytes);

/* Gives the image a library of its own, before state is set that sessions cannot share. Updates
 * use->kernel and use->function. */
CUresult gpd_image_make_own(struct gpd_session *session, struct gpd_use *use);

/* To be called when out of memory: waits for the driver to unload images that the session has
 * unloaded. Returns whether there were any. */
bool gpd_image_wait_unloaded(struct gpd_session *session);

/* Handles the destruction of a context: images loaded in it stay, but their variables are
 * reinitialized before the next use. */
void gpd_image_invalidate_context(struct gpd_session *session, const struct gpd_context *context);

/* Unloads all images. To be called when the session has no work left and its wait queue is
 * empty. */
void gpd_image_destroy_all(struct gpd_session *session);

#endif /* GPD_IMAGE_H */
