/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: device code loaded in the driver (CUlibrary), and its description.
 *
 * Loading and unloading code waits for every kernel on the device, and blocks the launches of all
 * sessions in the meantime. Code without state (gpd_image_uses, image_cache/image_scan.h) is
 * therefore loaded once for all sessions of the worker and stays loaded when unused; only code with
 * variables is loaded separately for each image. The functions of a shared library keep the
 * driver's default attributes, except that the maximum of dynamic shared memory is the largest that
 * any session has set; other settings are stored per session (image.h).
 *
 * Ownership: shared libraries are reference counted and belong to a registry in library.c; a
 * library that is not shared belongs to its image.
 * Threads: any, with the named device current where a function requires it. A function that "blocks
 * until the device is nearly idle" may stop the launches of other sessions while it waits
 * (device/quiesce.h). Errors: CUresult, CUDA_SUCCESS on success, unless noted.
 */
#ifndef GPD_LIBRARY_H
#define GPD_LIBRARY_H

#include "protocol/enc.h"
#include "server/worker/device/device.h"
#include "server/worker/image_cache/image_disk.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

struct gpd_blob;
struct gpd_jit;
struct gpd_session;

/* A kernel of a library. */
struct gpd_kernel {
	CUkernel driver;
	const char *name;     /* the driver's string, valid while the library is loaded */
	uint32_t params_size; /* size in bytes of the packed parameters; UINT32_MAX: unknown */
};

/* A kernel's function on one device. */
struct gpd_function {
	_Atomic(CUfunction) driver; /* NULL: not loaded; written last, so that the other members are
				       valid when it is not NULL */
	int dynamic; /* the driver's default maximum of dynamic shared memory in bytes */
	/* Maximum in bytes that is set in the driver; it never decreases. */
	_Atomic int dynamic_most;
};

/* Key of a shared library in the registry. */
struct gpd_library_key {
	struct gpd_image_key image;
	/* Ordinal of the device that was current at the load; kernel attributes are of this
	 * device. */
	int64_t device;
};

/* A library. */
struct gpd_library {
	/* The members from here to driver_size are written by the loading thread before other
	 * threads use the library, and are constant afterwards. */
	struct gpd_blob *blob; /* its code, a reference, because the driver uses the bytes */
	CUlibrary driver;      /* owned; NULL: not loaded */
	uint32_t kernel_count;
	struct gpd_kernel *kernels; /* owned array of kernel_count elements, sorted by name */
	struct gpd_jit *jit;  /* options for the driver's compiler, and its log buffers; owned */
	struct gp_bytes info; /* struct gp_image_info, encoded for the client; owned */
	struct gp_bytes log;  /* log of the driver's compiler; owned */
	bool unsupported;     /* the device cannot run one of its kernels */
	bool shared; /* in the registry, for all sessions; false: it belongs to one image */
	struct gpd_library_key key;
	uint64_t driver_size; /* bytes of the driver's memory (gpd_image_driver_size()) */
	/* not shared: called after gpd_library_unload_later() has unloaded the library; NULL: no
	 * callback */
	void (*gone)(void *arg);
	void *gone_arg; /* argument of gone() */

	pthread_mutex_t lock; /* serializes the loading of functions, which may take long */
	/* The driver has loaded a function on the device, and may have unpacked or compiled all
	 * code with it. Protected by lock. */
	bool unpacked[GPD_DEVICES_MAX];
	pthread_mutex_t allowing; /* serializes gpd_library_allow() */
	/* Arrays of kernel_count functions by device; NULL until the first use on the device. */
	_Atomic(struct gpd_function *) functions[GPD_DEVICES_MAX];

	/* The members below are protected by the lock of the registry. All but prev and next are
	 * used for shared libraries only. */
	UT_hash_handle hh;
	unsigned int refs; /* number of references */
	bool loading;      /* a thread is loading it; others wait for the result */
	/* result of the load; valid when `loading` is false */
	CUresult result;
	/* list of unused libraries, and of libraries that are not shared and are to be unloaded */
	struct gpd_library *prev, *next;
};

/* Limits on unused libraries that stay loaded; beyond them the least recently used library is
 * unloaded. Bytes count the images and the driver's memory for them; PTX, which the driver
 * compiles, counts 20 times its size. */
extern unsigned int gpd_library_unused_count;
extern uint64_t gpd_library_unused_bytes;

/* Statistics of this worker. */
extern struct gpd_library_counts {
	_Atomic uint64_t loaded; /* libraries loaded by the driver to be shared */
	_Atomic uint64_t shared; /* images that use a shared library that was loaded before */
	_Atomic uint64_t own;    /* libraries loaded by the driver for one image only */
} gpd_library_counts;

/*
 * Gets a library of the blob on the device, which must be current: a new reference to a shared one
 * if may_share is set, there are no options and the code has no state; otherwise a library of the
 * caller's own. Executor only. Blocks until the device is nearly idle and while the driver loads,
 * or while another thread loads the same library; session->loading_since_ms is set while it waits
 * for the device or loads.
 *
 * may_share: the caller stores its own settings outside the library. options: of the driver's
 * compiler, as in gpImageLoad. log_p: receives a copy of the compiler's text, also if the driver
 * fails to load, which the caller frees; initialized to zeros; may be NULL. Returns CUDA_SUCCESS
 * with *library_p set, which is released by gpd_library_put() or gpd_library_unload_later(). On
 * failure *library_p is unchanged. CUDA_ERROR_DEINITIALIZED: the session is closing, or the GPU
 * contexts are lost. Other errors: as gpd_image_load() (image_load.h).
 */
CUresult gpd_library_get(struct gpd_session *session, struct gpd_blob *blob, int device,
			 bool may_share, struct gp_bytes options, struct gpd_library **library_p,
			 struct gp_bytes *log_p);

/* Copies the bytes into *copy_p, whose data the caller frees. copy_p NULL: does nothing. Returns
 * false if out of memory. */
bool gpd_bytes_copy(struct gp_bytes bytes, struct gp_bytes *copy_p);

/* Releases a library that neither the caller nor its running work uses any more. A shared library:
 * as gpd_library_unref(). Another library is unloaded and freed at once; the driver then blocks
 * until no kernel runs, unless the caller has waited for a nearly idle device. */
void gpd_library_put(struct gpd_library *library);
/* Unloads and frees a library that is not shared, in the background when no kernel runs; then any
 * thread calls gone(arg), without the registry's lock. gone may be NULL. The caller must not use
 * the library any more. */
void gpd_library_unload_later(struct gpd_library *library, void (*gone)(void *arg), void *arg);
/* Drops a reference to a shared library. The library stays loaded until the limits on unused
 * libraries require its unload. */
void gpd_library_unref(struct gpd_library *library);

/* Sets *function_p, borrowed from the library, to the function of the kernel with this index on the
 * device, which must be current. If the function is not loaded, blocks until the device is nearly
 * idle and loads it; session->loading_since_ms is set meanwhile. session NULL: the caller has
 * waited for a nearly idle device already. index must be less than kernel_count. Returns
 * CUDA_SUCCESS, CUDA_ERROR_DEINITIALIZED if the session is closing or the GPU contexts are lost,
 * CUDA_ERROR_OUT_OF_MEMORY or an error of the driver; on failure *function_p is unchanged. */
CUresult gpd_library_function(struct gpd_session *session, struct gpd_library *library,
			      uint32_t index, int device, struct gpd_function **function_p);

/* Looks up a variable on the device, which must be current. managed: the variable may be a managed
 * one. Returns CUDA_SUCCESS and sets the variable's address and its size in bytes;
 * CUDA_ERROR_NOT_FOUND if there is no such variable; or another error of the driver. On failure the
 * two must not be used. */
CUresult gpd_library_global(const struct gpd_library *library, const char *name, bool managed,
			    CUdeviceptr *address_p, size_t *size_p);

/* Raises the driver's maximum of dynamic shared memory for a loaded function, whose device is
 * current, to at least this number of bytes; never lowers it. Returns CUDA_SUCCESS; or the driver's
 * error if it rejects the number. */
CUresult gpd_library_allow(struct gpd_library *library, struct gpd_function *function, int bytes);

/* Unloads unused libraries beyond the limits, in the background. Called when a session has closed,
 * because an earlier unload may not have been possible. */
void gpd_library_trim(void);

#endif /* GPD_LIBRARY_H */
