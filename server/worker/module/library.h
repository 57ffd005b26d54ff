/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: device code loaded in the driver (CUlibrary), and its description.
 *
 * Loading and unloading code waits for every kernel on the device, and blocks the launches of all
 * sessions meanwhile. Code without state (gpd_image_uses) is therefore loaded once for all sessions
 * of the worker and stays loaded when unused; only code with variables is loaded separately for
 * each image. The functions of a shared library keep the driver's default attributes, except that
 * the maximum of dynamic shared memory is the largest that any session has set; other settings are
 * stored per session (image.h).
 *
 * Ownership: shared libraries are reference counted; a library that is not shared belongs to its
 * image.
 * Threads: any, with the named device current where a function requires it.
 * Errors: CUresult, unless noted.
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

struct gpd_kernel {
	CUkernel driver;
	const char *name;     /* the driver's string, valid while the library is loaded */
	uint32_t params_size; /* of the packed parameters; UINT32_MAX: unknown */
};

/* A kernel's function on one device. */
struct gpd_function {
	_Atomic(CUfunction) driver; /* NULL: not loaded; set last */
	int dynamic;                /* default maximum of dynamic shared memory in bytes */
	_Atomic int dynamic_most;   /* maximum set in the driver; it never decreases */
};

struct gpd_library_key {
	struct gpd_image_name name;
	int64_t device; /* current device at the load; kernel attributes are of this device */
};

struct gpd_library {
	/* Written by the loading thread, before other threads see the library. */
	struct gpd_blob *blob; /* a reference; the driver uses its bytes */
	CUlibrary driver;
	uint32_t kernel_count;
	struct gpd_kernel *kernels; /* sorted by name */
	struct gpd_jit *jit;        /* compiler options and log buffers */
	struct gp_bytes info;       /* struct gp_image_info, encoded */
	struct gp_bytes log;        /* text of the compiler */
	bool unsupported;           /* the device cannot run one of its kernels */
	bool shared;
	struct gpd_library_key key;
	uint64_t driver_size;    /* gpd_image_driver_size() */
	void (*gone)(void *arg); /* called when a library that is not shared is unloaded; or NULL */
	void *gone_arg;

	pthread_mutex_t lock; /* protects the loading of functions */
	/* The driver has loaded a function on the device, and may have unpacked or compiled all
	 * code with it; lock. */
	bool unpacked[GPD_DEVICES_MAX];
	pthread_mutex_t allowing;
	/* Per kernel; allocated on first use. */
	_Atomic(struct gpd_function *) functions[GPD_DEVICES_MAX];

	/* Registry's lock; for shared libraries. */
	UT_hash_handle hh;
	unsigned int refs;
	bool loading;
	CUresult result;
	struct gpd_library *prev, *next; /* while it is unused */
};

/* Limits on unused libraries that stay loaded, by last use. Bytes count the images and the driver's
 * memory for them; PTX, which the driver compiles, counts 20 times its size. */
extern unsigned int gpd_library_unused_count;
extern uint64_t gpd_library_unused_bytes;

extern struct gpd_library_counts {
	_Atomic uint64_t loaded; /* by the driver, to be shared */
	_Atomic uint64_t shared; /* reused for another image */
	_Atomic uint64_t own;    /* by the driver, for one image only */
} gpd_library_counts;

/* Returns a library of the blob on the device, which must be current. Executor only. may_share: the
 * caller stores its own settings outside the library. session: shown as waiting while the driver
 * loads. *log_p (or NULL) gets the compiler's text, also on failure; the caller frees it. Released
 * by gpd_library_put(). */
CUresult gpd_library_get(struct gpd_session *session, struct gpd_blob *blob, int device,
			 bool may_share, struct gp_bytes options, struct gpd_library **library_p,
			 struct gp_bytes *log_p);

/* Copies a library's bytes into *copy_p, for the caller to free; nothing if copy_p is NULL. false:
 * out of memory. */
bool gpd_library_copy(struct gp_bytes bytes, struct gp_bytes *copy_p);

/* Releases a library that neither the caller nor its running work uses any more. One that is not
 * shared is unloaded at once. */
void gpd_library_put(struct gpd_library *library);
/* Unloads a library that is not shared when no kernel runs; then any thread calls gone(). */
void gpd_library_unload_later(struct gpd_library *library, void (*gone)(void *arg), void *arg);
/* Drops a reference to a shared library. */
void gpd_library_unref(struct gpd_library *library);

/* Returns the kernel's function on the device, which must be current; loads it if necessary.
 * session: as above; NULL: the caller has already waited for an idle context. */
CUresult gpd_library_function(struct gpd_session *session, struct gpd_library *library,
			      uint32_t index, int device, struct gpd_function **function_p);

/* Returns address and size of a variable on the device, which must be current. */
CUresult gpd_library_global(const struct gpd_library *library, const char *name, bool managed,
			    CUdeviceptr *address_p, size_t *size_p);

/* Raises the driver's maximum of dynamic shared memory for a loaded function to at least this
 * number of bytes. */
CUresult gpd_library_allow(struct gpd_library *library, struct gpd_function *function, int bytes);

/* To be called when a session has closed: unloads excess unused libraries, which may not have been
 * possible before. */
void gpd_library_trim(void);

#endif /* GPD_LIBRARY_H */
