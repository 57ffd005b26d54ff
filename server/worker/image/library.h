/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library of the driver, and all that is known of it: loaded device code.
 *
 * Loading code and unloading it wait for every kernel on the device, and nobody's launches get on
 * meanwhile.  So code that keeps no state (gpd_image_uses) is loaded once for all sessions of the
 * worker, and stays when nobody uses it; only code with variables is loaded for each image anew.
 * A shared library's functions keep the driver's defaults, but for the largest amount of dynamic
 * shared memory that anybody allowed: what a session sets otherwise is its own (image.h).
 * Counted.  Any thread, with the device current that a function says it needs.
 */
#ifndef GPD_LIBRARY_H
#define GPD_LIBRARY_H

#include "protocol/enc.h"
#include "server/worker/code/image_disk.h"
#include "server/worker/device/device.h"

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
	const char *name;     /* the driver's, as long as the library is loaded */
	uint32_t params_size; /* of the packed parameters; UINT32_MAX: the driver does not say */
};

/* A kernel on a device. */
struct gpd_function {
	_Atomic(CUfunction) driver; /* NULL: not loaded there; set last */
	int dynamic;                /* bytes of dynamic shared memory that it allows by itself */
	_Atomic int dynamic_most;   /* that the driver has been told to allow; never less */
};

struct gpd_library_key {
	struct gpd_image_name name;
	int64_t device; /* that was current when it was loaded: what its kernels need is told for it
			 */
};

struct gpd_library {
	/* Written by who loads it, before anybody else sees it. */
	struct gpd_blob *blob; /* outlives the library, which uses its bytes */
	CUlibrary driver;
	uint32_t kernel_count;
	struct gpd_kernel *kernels; /* by name */
	struct gpd_jit *jit;        /* what the compiler of the driver was told, and told */
	struct gp_bytes info;       /* struct gp_image_info, encoded */
	struct gp_bytes log;        /* the compiler's text */
	bool unsupported;           /* the device cannot run some kernel of it */
	bool shared;
	struct gpd_library_key key;
	uint64_t driver_size;    /* gpd_image_driver_size() */
	void (*gone)(void *arg); /* of one that is not shared, when it is unloaded; or NULL */
	void *gone_arg;

	pthread_mutex_t lock; /* over loading functions */
	/* The driver has loaded a function for the device, and with it unpacked or compiled the
	 * rest; lock. */
	bool unpacked[GPD_DEVICES_MAX];
	pthread_mutex_t allowing;
	/* On first use: per kernel. */
	_Atomic(struct gpd_function *) functions[GPD_DEVICES_MAX];

	/* Under the registry's lock; of a shared one. */
	UT_hash_handle hh;
	unsigned int refs;
	bool loading;
	CUresult result;
	struct gpd_library *prev, *next; /* while nobody uses it */
};

/* How much stays loaded that nobody uses: what was used last.  bytes: of images and of what the
 * driver makes of them; of a text that it compiles, 20 times as many. */
extern unsigned int gpd_library_unused_count;
extern uint64_t gpd_library_unused_bytes;

extern struct gpd_library_counts {
	_Atomic uint64_t loaded; /* by the driver, for sharing */
	_Atomic uint64_t shared; /* given to one more image */
	_Atomic uint64_t own;    /* by the driver, for one image alone */
} gpd_library_counts;

/* The blob's library on the device, which is current; may_share: the caller keeps what it sets to
 * itself.  session: who is seen to wait if the driver has to load; executor.  *log_p (or NULL),
 * malloc'ed, is the compiler's text, also of a failure. */
CUresult gpd_library_get(struct gpd_session *session, struct gpd_blob *blob, int device,
			 bool may_share, struct gp_bytes options, struct gpd_library **library_p,
			 struct gp_bytes *log_p);

/* A copy of what a library says of itself, malloc'ed, if anybody wants it; false: no memory. */
bool gpd_library_copy(struct gp_bytes bytes, struct gp_bytes *copy_p);

/* Of who uses it no more, nor has work under way that does.  What is not shared is unloaded. */
void gpd_library_put(struct gpd_library *library);
/* The same of one that is not shared, when no kernel runs: gone() is called then, by any thread. */
void gpd_library_unload_later(struct gpd_library *library, void (*gone)(void *arg), void *arg);
/* The same of a shared one that was not used. */
void gpd_library_unref(struct gpd_library *library);

/* The kernel on the device, which is current; loads it if need be.  session as above, NULL: the
 * caller has waited for a quiet moment already. */
CUresult gpd_library_function(struct gpd_session *session, struct gpd_library *library,
			      uint32_t index, int device, struct gpd_function **function_p);

/* A variable on the device, which is current. */
CUresult gpd_library_global(const struct gpd_library *library, const char *name, bool managed,
			    CUdeviceptr *address_p, size_t *size_p);

/* Has the driver allow launches of a loaded function so many bytes of dynamic shared memory. */
CUresult gpd_library_allow(struct gpd_library *library, struct gpd_function *function, int bytes);

/* A session has closed: what is too much and could not be unloaded before is tried again. */
void gpd_library_trim(void);

#endif /* GPD_LIBRARY_H */
