/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code that a session has loaded: a library of the driver, its kernels and its variables.
 *
 * An image belongs to the session's handle table and names its kernels by number.  Its library may
 * be other sessions', too (library.h), until it needs one of its own; it is given back when all
 * work given before is done.  Executor only.  One that the client has unloaded is no longer the
 * executor's: whoever unloads the library frees it, and the session reaches it by image.c's list of
 * those, under its lock, alone.
 */
#ifndef GPD_IMAGE_H
#define GPD_IMAGE_H

#include "server/worker/code/image_cache.h"
#include "server/worker/code/image_scan.h"
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
	struct gpd_preload *preloads; /* promise.h: images that it is promised; utlist */
};

/* -ENOMEM. */
int gpd_module_session_create(struct gpd_session *session);
void gpd_module_session_destroy(struct gpd_session *session);

struct gpd_image {
	struct gpd_handle handle;
	struct gpd_context *context; /* in which it was loaded */
	struct gpd_blob *blob;
	struct gpd_library *library; /* NULL: while it is stale, if loading it anew failed */
	struct gpd_library *left;    /* that it shared before; work may still use it */
	int *dynamic; /* per kernel and device: gpd_image_get_dynamic() and 1; or NULL */
	struct gpd_global *globals;
	struct gpd_image_uses uses;
	uint64_t code;    /* charged to code-memory: its bytes, and what the driver makes of them */
	uint64_t charged; /* for its variables, to the device of its context */
	int charged_device;
	uint64_t seen; /* of its variables there, those that the client has asked for */
	bool stale;    /* its context was destroyed: to be loaded again before it is used */

	/* Unloaded by the client, but the driver still has its code and its variables' memory,
	 * which count until it is unloaded or the session ends; image.c's lock. */
	struct gpd_image *next;
	struct gpd_session *payer;
	uint32_t leave; /* gpd_ledger_free_begin() */
};

/* A kernel of the wire, on a device. */
struct gpd_use {
	struct gpd_image *image;
	struct gpd_kernel *kernel;
	struct gpd_function *function;
	int device;
	uint32_t index;
};

/* The device is current in this thread.  CUDA_ERROR_INVALID_HANDLE. */
CUresult gpd_image_kernel(struct gpd_session *session, uint64_t kernel, int device,
			  struct gpd_use *use);

/* The same for the device of the current call's context, which becomes current. */
CUresult gpd_image_kernel_in_context(struct gpd_session *session, uint64_t kernel,
				     struct gpd_use *use);

/* For calls that travel as they are. */
CUresult gpd_function_get(struct gpd_session *session, uint64_t kernel, CUfunction *function_p);

/* The bytes of dynamic shared memory that the session's launches of it may have; of an image of
 * its own the driver knows, and this is INT_MAX. */
int gpd_image_get_dynamic(const struct gpd_use *use);
CUresult gpd_image_set_dynamic(const struct gpd_use *use, int bytes);

/* Gives the image a library of its own before state is set that sessions cannot share; use->kernel
 * and function change. */
CUresult gpd_image_make_own(struct gpd_session *session, struct gpd_use *use);

/* Executor, out of memory: waits a while for the driver to unload images that the session has
 * unloaded; whether there are any. */
bool gpd_image_wait_unloaded(struct gpd_session *session);

/* The images that were loaded in the context stay, but their variables start anew. */
void gpd_image_invalidate_context(struct gpd_session *session, const struct gpd_context *context);

/* Unloads all.  Only when no work of the session is left and its wait queue is empty. */
void gpd_image_destroy_all(struct gpd_session *session);

#endif /* GPD_IMAGE_H */
