/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process-wide state of the driver, and the checks at the start of every call. Each device has one
 * (primary) context. A kernel's fault is sticky for the process: gs_fail() stores the first one,
 * and every later call that needs a context returns it.
 *
 * Threads: any.
 * Errors: CUresult.
 */
#ifndef GS_DRIVER_H
#define GS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include "softgpu/driver/soft_cuda.h"
#pragma GCC visibility pop

#define GS_DEVICES_MAX 8
#define GS_MULTIPROCESSORS_MAX 256
#define GS_MULTIPROCESSOR_THREADS 2048
#define GS_MULTIPROCESSOR_BLOCKS 32
#define GS_MULTIPROCESSOR_REGISTERS 65536
#define GS_MULTIPROCESSOR_SHARED (228 << 10)
#define GS_BLOCK_THREADS 1024
#define GS_BLOCK_SHARED (48 << 10)
#define GS_BLOCK_SHARED_OPTIN (227 << 10)
#define GS_BLOCK_SHARED_RESERVED 1024
#define GS_PRINT_MAX ((size_t)1 << 20)

struct gs_heap;

/* Check for calls that need no context: CUDA_SUCCESS after cuInit(). */
CUresult gs_enter_device(void);
/* Check for calls that need a context: in addition, the calling thread has a current context that
 * is alive, and no kernel has failed. */
CUresult gs_enter(void);
CUresult gs_check_device(CUdevice device);

/* Stores the first error code, prints a line, and stops the work of all streams. */
void gs_fail(CUresult code, const char *who, const char *why);
CUresult gs_failure(void);

/* Configuration set by cuInit(); memory and multiprocessors are per device. */
int gs_device_count(void);
/* Whether each device supports peer access to all others. */
bool gs_device_peers(void);
size_t gs_device_memory(void);
int gs_device_multiprocessors(void);

/* Returns the calling thread's current context, which may belong to a green context. */
CUcontext gs_context_current(void);
CUcontext gs_context_primary(int device);
bool gs_context_is_primary(CUcontext ctx);
/* Returns the device of a context; -1: unknown context. */
int gs_context_device(CUcontext ctx);
/* Returns the device of the current context; 0 without a context. */
int gs_device_current(void);
/* Activates the primary context, with a new number, or ends it. */
void gs_context_set_active(int device, bool active);
/* Number of multiprocessors of the current context. */
int gs_context_multiprocessors(void);

/* Returns the heap for malloc() in kernels on the current device; created when the first kernel
 * that needs it is launched. */
CUresult gs_context_heap(struct gs_heap **heap_p);
/* Called before a launch of `threads` threads with `bytes` of local memory each. Like a GPU, the
 * device retains local memory for the maximum number of resident threads until the context ends.
 * GS_LOCAL_FREE bytes per thread are always available. */
#define GS_LOCAL_FREE 1024
CUresult gs_context_local(int device, uint32_t bytes, uint64_t threads);

/* Output of kernels is buffered until a call that synchronizes with them. */
void gs_print_append(void *unused, const char *text, size_t len);
void gs_print_error(void *unused, const char *text, size_t len);
void gs_print_flush(void);

const char *gs_error_name(CUresult code);

#endif /* GS_DRIVER_H */
