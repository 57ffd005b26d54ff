/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code that a session has loaded: the driver's library, its kernels and its variables.
 *
 * An image belongs to the session's handle table and names its kernels by number.  The library is
 * unloaded when all work given before is done.  Executor only.
 */
#ifndef GPD_IMAGE_H
#define GPD_IMAGE_H

#include "server/handle.h"
#include "server/image_scan.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_blob;
struct gpd_context;
struct gpd_global;
struct gpd_jit;
struct gpd_session;

struct gpd_kernel {
	CUkernel driver;
	const char *name;     /* the driver's, as long as the library is loaded */
	uint32_t params_size; /* of the packed parameters; UINT32_MAX: the driver does not say */
};

struct gpd_image {
	struct gpd_handle handle;
	struct gpd_context *context; /* in which it was loaded */
	struct gpd_blob *blob;       /* outlives the library, which uses its bytes */
	CUlibrary library;
	uint32_t kernel_count;
	struct gpd_kernel *kernels;
	CUfunction **functions; /* per device, on first use: per kernel, on first use */
	struct gpd_global *globals;
	struct gpd_jit *jit; /* what the compiler of the driver was told, and told */
	struct gpd_image_uses uses;
	uint64_t charged; /* for its variables, to the device of its context */
	int charged_device;
	uint64_t seen; /* of its variables there, those that the client has asked for */
	bool stale;    /* its context was destroyed: to be loaded again before it is used */
};

/* A kernel of the wire on a device that is current in this thread.  CUDA_ERROR_INVALID_HANDLE. */
CUresult gpd_image_kernel(struct gpd_session *session, uint64_t kernel, int device,
			  struct gpd_image **image_p, struct gpd_kernel **kernel_p,
			  CUfunction *function_p);

/* The same for the device of the current call's context: for calls that travel as they are. */
CUresult gpd_function_get(struct gpd_session *session, uint64_t kernel, CUfunction *function_p);

/* Whether the range lies in a variable of an image that the client has asked for. */
bool gpd_image_owns(struct gpd_session *session, uint64_t address, uint64_t size);

/* The images that were loaded in the context stay, but their variables start anew. */
void gpd_image_forget_context(struct gpd_session *session, const struct gpd_context *context);

/* Unloads all.  Only when no work of the session is left and its wait queue is empty. */
void gpd_image_forget_session(struct gpd_session *session);

#endif /* GPD_IMAGE_H */
