/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded images. Each is one load of an image by a session, with its kernels and variables. The
 * bytes of the image are a blob (image_cache/image_cache.h), which several loads may share.
 *
 * A loaded image is in the session's handle table and identifies its kernels by index. Before a
 * call that makes the driver load or unload code, the worker waits until the device is nearly idle
 * (device/quiesce.h). The driver library may be shared with other sessions (library.h) until the
 * loaded image needs one of its own. The library is released when all work enqueued before the
 * unload is done.
 *
 * Ownership: the session, through its handle table. After the client has unloaded an image, the
 * thread that unloads its library frees it; the session can then reach it only through image.c's
 * list of unloaded images, under that list's lock.
 * Threads: executor only, except the list of unloaded images.
 * Errors: CUresult, CUDA_SUCCESS on success, unless noted.
 */
#ifndef GPD_IMAGE_H
#define GPD_IMAGE_H

#include "server/worker/image_cache/image_cache.h"
#include "server/worker/image_cache/image_scan.h"
#include "server/worker/session/assertion.h"
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
 * The part of a session's state that its modules and images use.
 * Threads: the executor. The main thread sets the program and the first preloads
 * (gpd_preload_create_all()) before the session has an executor. images_leaving is also changed by
 * the responder. For uploader see image_cache.h.
 */
struct gpd_module_session {
	/* Number of images that the client has unloaded and that work may still use. Decremented by
	 * the responder. */
	_Atomic unsigned int images_leaving;
	/* Incremented whenever the driver's kernels of an image change, so that graphs are
	 * rebuilt. */
	uint64_t kernels_changed;
	struct gpd_image_uploader uploader; /* provides bytes to the image cache */
	bool has_program;                   /* the client has sent a program key */
	/* Hello.program_key (GPD_PROGRAM_KEY_SIZE bytes, image_preload.h), which identifies the
	 * client's program; valid with has_program. */
	uint8_t program[32];
	/* List of images that the session will probably load (image_preload.h); a utlist. */
	struct gpd_preload *preloads;
};

/* A loaded image: one load of an image by a session. */
struct gpd_image {
	struct gpd_handle handle;
	/* Context in which it was loaded, borrowed; NULL: the context did not exist or was
	 * destroyed. */
	struct gpd_context *context;
	struct gpd_blob *blob; /* its bytes (image_cache/image_cache.h), a reference */
	/* Owned, or a reference if shared; NULL: a stale image could not be reloaded. */
	struct gpd_library *library;
	/* Previous library: the shared one that it used before it got its own. A reference, because
	 * work may still use it; NULL: none. */
	struct gpd_library *previous_library;
	/* The session's maxima of dynamic shared memory while the library is shared: an owned array
	 * by device, then by kernel index, of bytes plus 1; 0: not set. NULL: none is set. */
	int *dynamic;
	struct gpd_global *globals; /* list of the variables that the client has looked up */
	struct gpd_image_uses uses; /* features that its code uses (image_cache/image_scan.h) */
	/* Its entry in the session's list while kernels of it may run, if they may fail an
	 * assertion. */
	struct gpd_asserting_code asserting;
	/* Bytes charged to the quota code-memory: size of the image and of the driver's memory for
	 * it. */
	uint64_t code;
	uint64_t charged;         /* bytes charged to charged_device for its variables */
	int charged_device;       /* ordinal of that device */
	uint64_t looked_up_bytes; /* bytes of its variables on charged_device that the client has
				     looked up */
	bool stale; /* its context was destroyed, so it is reloaded before its next use */

	/* The members below are protected by the lock of the list of unloaded images. They are used
	 * from the unload by the client until the driver has unloaded the code and variables, which
	 * stay charged until then or until the session's end. */
	struct gpd_image *next; /* next in the list of unloaded images */
	/* session that is charged, borrowed; NULL: no session is charged any more */
	struct gpd_session *payer;
	uint32_t free_epoch; /* epoch of gpd_ledger_free_begin() for gpd_ledger_free_end() */
};

/* A kernel, as identified on the wire, on a device. Its pointers are borrowed; they are valid until
 * the image is unloaded, reinitialized (gpd_image_refresh()) or gets another library. */
struct gpd_device_kernel {
	struct gpd_image *image;
	struct gpd_kernel *kernel;
	struct gpd_function *function; /* loaded on the device */
	int device;
	uint32_t index; /* index of the kernel in the library */
};

/*
 * Looks up a kernel on the device, which must be current, and loads its function if necessary.
 * kernel: the client's handle (GP_KERNEL_IMAGE(), GP_KERNEL_INDEX()), unchecked. May block until
 * the device is nearly idle and, for a stale image, until all work of the session is done
 * (gpd_image_refresh(), image_library.h). Returns CUDA_SUCCESS with *device_kernel set; on failure
 * *device_kernel must not be used.
 *
 * CUDA_ERROR_INVALID_HANDLE: there is no such kernel.
 * CUDA_ERROR_DEINITIALIZED: the session is closing, or the GPU contexts are lost.
 * CUDA_ERROR_OUT_OF_MEMORY, or another error of the driver.
 */
CUresult gpd_image_kernel(struct gpd_session *session, uint64_t kernel, int device,
			  struct gpd_device_kernel *device_kernel);

/* Makes the device of the current call's context current, and looks up a kernel on it as
 * gpd_image_kernel() does. Also fails as gpd_context_enter() (context/context.h), if the context
 * does not exist. */
CUresult gpd_image_kernel_in_context(struct gpd_session *session, uint64_t kernel,
				     struct gpd_device_kernel *device_kernel);

/* Argument decoding for generated calls: sets *function_p to the driver's function of a kernel on
 * the device of the current call's context, which must be current. Errors as gpd_image_kernel(). */
CUresult gpd_function_get(struct gpd_session *session, uint64_t kernel, CUfunction *function_p);

/* Returns the maximum dynamic shared memory, in bytes, of the session's launches of the kernel;
 * INT_MAX if the image has its own library, for which the driver checks the maximum. */
int gpd_image_get_dynamic(const struct gpd_device_kernel *device_kernel);
/* Sets the maximum dynamic shared memory, in bytes, of the session's launches of the kernel, whose
 * library must be shared, by gpd_library_allow() (library.h). device_kernel->device must be
 * current. Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE if the number is negative or more than
 * the driver allows; or another error, and the maximum is unchanged. */
CUresult gpd_image_set_dynamic(const struct gpd_device_kernel *device_kernel, int bytes);

/* Gives the image a library of its own and updates device_kernel->kernel and
 * device_kernel->function; called before a setting that sessions cannot share.
 * device_kernel->device must be current. Blocks and fails as gpd_image_unshare() (image_library.h)
 * and gpd_image_kernel() do. */
CUresult gpd_image_make_own(struct gpd_session *session, struct gpd_device_kernel *device_kernel);

/* Called when out of memory: blocks until the driver has unloaded the images that the session has
 * unloaded. It first waits for the session's work that may use them, without a limit, and then for
 * at most 2 s. Returns whether there were any such images. */
bool gpd_image_wait_unloaded(struct gpd_session *session);

/* Handles the destruction of a context. Images loaded in it, or without a known context, stay
 * loaded. If the library is their own they become stale, so that their variables are reinitialized
 * before the next use; otherwise only the session's settings are reset. The client must look up
 * their variables again. */
void gpd_image_invalidate_context(struct gpd_session *session, const struct gpd_context *context);

/* Unloads all images, in the background, and ends their charges at once, also of those that the
 * client has unloaded. Called when the session has no work left and no waits (gpd_wait_is_empty(),
 * stream/responder.h). */
void gpd_image_destroy_all(struct gpd_session *session);

#endif /* GPD_IMAGE_H */
