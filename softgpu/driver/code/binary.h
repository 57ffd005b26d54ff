/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded device code: the common part of libraries (cuLibraryLoadData) and modules
 * (cuModuleLoadData).
 *
 * Kernels are part of their code, and references to them count as references to the code, so that
 * unloaded code stays allocated until its last launch is complete. A library has one instance per
 * device on which it is used, because each device has its own variables.
 * Ownership: reference counted (object.h).
 * Threads: any. Members marked atomic are accessed with the __atomic functions. A lock in
 * gs_binary_on() protects `twins`, and the lock of reference.c protects `references`. The other
 * members do not change after loading.
 * Errors: CUresult, or NULL for lookups.
 */
#ifndef GS_BINARY_H
#define GS_BINARY_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"
#include "softgpu/engine/engine.h"

/* A kernel. It has two handles, one for each of its two objects: CUkernel and CUfunction. */
struct gs_kernel {
	struct gs_object object;   /* GS_KIND_KERNEL; for libraries only */
	struct gs_object function; /* GS_KIND_FUNCTION */
	struct gs_binary *code;
	const struct gs_function *engine;
	struct gs_function_info info;
	int dynamic_shared_max; /* atomic */
	int carveout;           /* atomic */
	/* atomic: value of CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED */
	int non_portable_cluster;
	int loaded;  /* atomic: whether a call has requested the kernel's CUfunction */
	int refused; /* atomic: whether the message that the device cannot run the kernel was
			printed */
};

struct gs_binary {
	struct gs_object object; /* GS_KIND_LIBRARY; published for libraries only */
	struct gs_object module; /* GS_KIND_MODULE or GS_KIND_LIBRARY_MODULE */
	bool is_library;
	int device; /* device on which it was loaded, and whose memory contains its variables */
	/* Of a library: its instances on other devices, by device; owned. NULL: not used on that
	 * device yet, or the library's own device. A module has none. */
	struct gs_binary *twins[GS_DEVICES_MAX];
	/* Of a library: PTX text from which the instances on other devices are created; owned. NULL
	 * for modules, and if there is only one device. */
	char *text;
	/* Size of `text` in bytes; 0 if it is NULL. */
	size_t text_size;
	struct gs_module *engine;
	size_t charged; /* bytes of variables that are charged to the device */
	struct gs_kernel *kernels;
	size_t kernel_count;
	/* list of texture and surface references, owned (reference.h) */
	struct gs_reference *references;
};

/* Destination of the PTX compiler's error log, from CUjit_option. The memory belongs to the
 * application. */
struct gs_jit_log {
	char *buffer; /* may be NULL; `size` is in bytes */
	size_t size;
	void **size_p; /* receives the number of bytes written, as an integer in a pointer; may be
			  NULL */
};

/* Loads an image (PTX text or a fatbin) on the current device and publishes its handles. The image
 * is copied. Returns CUDA_SUCCESS and stores a reference in *code_p, which gs_binary_unload()
 * drops; on failure (for example CUDA_ERROR_INVALID_PTX or CUDA_ERROR_OUT_OF_MEMORY) nothing is
 * loaded and *code_p is not usable. */
CUresult gs_binary_load(const void *image, bool is_library, const struct gs_jit_log *log,
			struct gs_binary **code_p);
/* Stores the instance of a library on a device in *on_p, and creates it if necessary; for a module,
 * stores the module itself. The instance is borrowed from `code`, which destroys it. Returns
 * CUDA_SUCCESS or the error of loading; *on_p is then NULL. */
CUresult gs_binary_on(struct gs_binary *code, int device, struct gs_binary **on_p);
/* Invalidates the handles of the code, its kernels and its references, and drops the creator's
 * reference. Later look-ups of the handles fail; the objects remain until the last launch of the
 * code is complete. Does not wait. */
void gs_binary_unload(struct gs_binary *code);
/* Unloads all modules when the context ends. Libraries stay, because they do not belong to a
 * context. */
void gs_binary_destroy_all(void);

/* Returns the kernel of a CUfunction or CUkernel with a new reference to its code, which
 * gs_kernel_put() drops. NULL: unknown handle. */
struct gs_kernel *gs_kernel_get(const void *handle);
void gs_kernel_put(struct gs_kernel *kernel);
/* Replaces a library's kernel by its instance on a device. The caller's reference moves to the
 * instance. Returns CUDA_SUCCESS or the error of loading; *kernel_p and the reference are then
 * unchanged. */
CUresult gs_kernel_on(struct gs_kernel **kernel_p, int device);
/* Returns the kernel of that name without a new reference, or NULL. */
struct gs_kernel *gs_binary_kernel(const struct gs_binary *code, const char *name);

/* Returns the maximum number of resident blocks of `threads` threads and `dynamic_shared` bytes per
 * multiprocessor; 0: such a block does not fit. */
int gs_kernel_occupancy(const struct gs_kernel *kernel, size_t threads, size_t dynamic_shared);

#endif /* GS_BINARY_H */
