/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded device code: the common part of libraries and modules. Kernels are part of it, and
 * references to them count as references to the code, so that unloaded code stays allocated until
 * its last launch is complete.
 *
 * Ownership: reference counted (object.h).
 * Threads: any.
 * Errors: CUresult, or NULL for lookups.
 */
#ifndef GS_BINARY_H
#define GS_BINARY_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"
#include "softgpu/engine/engine.h"

/* A kernel. CUkernel and CUfunction are the addresses of its two objects. */
struct gs_kernel {
	struct gs_object object;   /* GS_KIND_KERNEL; for libraries only */
	struct gs_object function; /* GS_KIND_FUNCTION */
	struct gs_binary *code;
	const struct gs_function *engine;
	struct gs_function_info info;
	int dynamic_shared_max; /* atomic */
	int carveout;           /* atomic */
	int non_portable_cluster;
	int loaded;  /* atomic: the function was requested by a call */
	int refused; /* atomic: the message about a kernel that cannot run was printed */
};

struct gs_binary {
	struct gs_object object; /* GS_KIND_LIBRARY; published for libraries only */
	struct gs_object module; /* GS_KIND_MODULE or GS_KIND_LIBRARY_MODULE */
	bool is_library;
	int device; /* device whose copy of the variables it has */
	/* Of a library: its instances on other devices, created on first use there, and the PTX
	 * text from which they are created. */
	struct gs_binary *twins[GS_DEVICES_MAX];
	char *text;
	size_t text_size;
	struct gs_module *engine;
	size_t charged;
	struct gs_kernel *kernels;
	size_t kernel_count;
	struct gs_reference *references; /* see reference.h; protected by its lock */
};

/* Destination of the error log for PTX, from CUjit_option; buffer may be NULL. */
struct gs_jit_log {
	char *buffer;
	size_t size;
	void **size_p; /* receives the length written */
};

/* Loads an image. The caller owns a reference, which gs_binary_unload() drops. */
CUresult gs_binary_load(const void *image, bool is_library, const struct gs_jit_log *log,
			struct gs_binary **code_p);
/* Returns the instance of a library on a device, which is destroyed with the library; for a module,
 * the module itself. */
CUresult gs_binary_on(struct gs_binary *code, int device, struct gs_binary **on_p);
/* Invalidates the handles and drops the creator's reference. */
void gs_binary_unload(struct gs_binary *code);
/* Modules only: libraries do not belong to a context. */
void gs_binary_destroy_all(void);

/* Returns the kernel of a CUfunction or CUkernel with a new reference to the code, or NULL. */
struct gs_kernel *gs_kernel_get(const void *handle);
void gs_kernel_put(struct gs_kernel *kernel);
/* Replaces a library's kernel by its instance on a device; transfers the reference. */
CUresult gs_kernel_on(struct gs_kernel **kernel_p, int device);
struct gs_kernel *gs_binary_kernel(const struct gs_binary *code, const char *name);

/* Returns the maximum number of resident blocks of this size per multiprocessor. */
int gs_kernel_occupancy(const struct gs_kernel *kernel, size_t threads, size_t dynamic_shared);

#endif /* GS_BINARY_H */
