/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded device code: what a library and a module have in common. The kernels lie in it and count
 * their references on it, so that code which is unloaded stays until its last launch is over.
 */
#ifndef GS_BINARY_H
#define GS_BINARY_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"
#include "softgpu/engine/engine.h"

/* CUkernel and CUfunction are the addresses of its two objects. */
struct gs_kernel {
	struct gs_object object;   /* GS_KIND_KERNEL; only of libraries */
	struct gs_object function; /* GS_KIND_FUNCTION */
	struct gs_binary *code;
	const struct gs_function *engine;
	struct gs_function_info info;
	int dynamic_shared_max; /* atomic */
	int carveout;           /* atomic */
	int non_portable_cluster;
	int loaded;  /* atomic: somebody has asked for the function */
	int refused; /* atomic: the line about a kernel that cannot run is written */
};

struct gs_binary {
	struct gs_object object; /* GS_KIND_LIBRARY; published only for libraries */
	struct gs_object module; /* GS_KIND_MODULE or GS_KIND_LIBRARY_MODULE */
	bool is_library;
	int device; /* whose variables it has */
	/* Of a library: the same on other devices, made when it is first needed there, and what of.
	 */
	struct gs_binary *twins[GS_DEVICES_MAX];
	char *text;
	size_t text_size;
	struct gs_module *engine;
	size_t charged;
	struct gs_kernel *kernels;
	size_t kernel_count;
	struct gs_reference *references; /* reference.h; under its lock */
};

/* Where the text of what is wrong with PTX goes, from CUjit_option; buffer may be NULL. */
struct gs_jit_log {
	char *buffer;
	size_t size;
	void **size_p; /* gets the length written */
};

CUresult gs_binary_load(const void *image, bool is_library, const struct gs_jit_log *log,
			struct gs_binary **code_p);
/* A library as it is on a device, which goes with it; what is no library, itself. */
CUresult gs_binary_on(struct gs_binary *code, int device, struct gs_binary **on_p);
/* The handles die; the creator's reference is given up. */
void gs_binary_unload(struct gs_binary *code);
/* Modules only: libraries do not belong to the context. */
void gs_binary_destroy_all(void);

/* By CUfunction or CUkernel; a new reference on the code, or NULL. */
struct gs_kernel *gs_kernel_get(const void *handle);
void gs_kernel_put(struct gs_kernel *kernel);
/* A library's kernel as it is on a device; takes the reference over and gives one. */
CUresult gs_kernel_on(struct gs_kernel **kernel_p, int device);
struct gs_kernel *gs_binary_kernel(const struct gs_binary *code, const char *name);

/* Blocks of that size that one multiprocessor holds at once. */
int gs_kernel_occupancy(const struct gs_kernel *kernel, size_t threads, size_t dynamic_shared);

#endif /* GS_BINARY_H */
