/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process-wide state of the software CUDA driver, and the checks at the start of every call.
 *
 * Each device has one context, its primary context; green contexts (context/green.h) are parts of
 * it. A kernel's fault is sticky for the process: gs_fail() stores the first error, and every later
 * call that needs a context returns it.
 * Threads: any.
 * Errors: functions that return CUresult return CUDA_SUCCESS, or the error that the CUDA call is to
 * return.
 */
#ifndef GS_DRIVER_H
#define GS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#include "softgpu/driver/soft_cuda.h"
#pragma GCC visibility pop

/* Maximum number of devices, and of multiprocessors of a device. */
#define GS_DEVICES_MAX 8
#define GS_MULTIPROCESSORS_MAX 256
/* Resources of a multiprocessor: numbers of threads, blocks and 32-bit registers, and bytes of
 * shared memory. */
#define GS_MULTIPROCESSOR_THREADS 2048
#define GS_MULTIPROCESSOR_BLOCKS 32
#define GS_MULTIPROCESSOR_REGISTERS 65536
#define GS_MULTIPROCESSOR_SHARED (228 << 10)
/* Limits of a block: number of threads, bytes of shared memory, bytes of shared memory that a
 * kernel can opt in to, and bytes of shared memory that are reserved in each block. */
#define GS_BLOCK_THREADS 1024
#define GS_BLOCK_SHARED (48 << 10)
#define GS_BLOCK_SHARED_OPTIN (227 << 10)
#define GS_BLOCK_SHARED_RESERVED 1024
/* Size in bytes of buffered kernel output at which gs_print_append() flushes the buffer; also the
 * value of CU_LIMIT_PRINTF_FIFO_SIZE. */
#define GS_PRINT_MAX ((size_t)1 << 20)

struct gs_heap;

/* Check of calls that need no context. Returns CUDA_SUCCESS, or CUDA_ERROR_NOT_INITIALIZED before
 * cuInit(). */
CUresult gs_enter_device(void);
/* Check of calls that need a context. Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_CONTEXT if the
 * calling thread has no current context; CUDA_ERROR_CONTEXT_IS_DESTROYED if that context has ended;
 * or the error of gs_failure(). */
CUresult gs_enter(void);
/* Returns CUDA_SUCCESS, CUDA_ERROR_NOT_INITIALIZED, or CUDA_ERROR_INVALID_DEVICE. */
CUresult gs_check_device(CUdevice device);

/* Stores the process's sticky error, prints a line on standard error and stops the work of all
 * streams. If an error is already stored, only stops the streams. `who` names the kernel or the
 * operation, `why` is the reason; both are only printed. Does not wait. */
void gs_fail(CUresult code, const char *who, const char *why);
/* Returns the error that gs_fail() has stored, or CUDA_SUCCESS. */
CUresult gs_failure(void);

/* Returns the number of devices; their numbers, from 0, are those of CUdevice. A process sees those
 * that CUDA_VISIBLE_DEVICES names. May be called before cuInit(). */
int gs_device_count(void);
/* Writes a device's UUID as NVIDIA's tools do: "GPU-...", 41 bytes with the terminating zero. */
void gs_device_uuid_text(int number, char *text, size_t size);
/* Configuration from the environment, set by cuInit(); the same for all devices. */
/* Returns whether each device supports peer access to all others. */
bool gs_device_peers(void);
/* Returns the size of a device's memory in bytes. */
size_t gs_device_memory(void);
/* Returns the device memory in bytes that a context takes. */
size_t gs_device_context_memory(void);
/* Waits as long as creating a context takes. */
void gs_device_simulate_context(void);
/* Returns the number of multiprocessors of a device. */
int gs_device_multiprocessors(void);

/* Returns the calling thread's current context, which may belong to a green context. NULL: none.
 * Does not add a reference. */
CUcontext gs_context_current(void);
/* Returns the handle of the device's primary context, active or not. The device must exist. */
CUcontext gs_context_primary(int device);
/* Returns whether the handle is that of a device's primary context, active or not. Any value is
 * accepted; false for NULL, a green context or an unknown handle. */
bool gs_context_is_primary(CUcontext ctx);
/* Returns the device (ordinal) of a primary context or of a green context's CUcontext; -1 for an
 * unknown handle. */
int gs_context_device(CUcontext ctx);
/* Returns the device of the current context. Without a current context the result is 0, which is
 * also the number of the first device. */
int gs_device_current(void);
/* Activates the device's primary context and assigns a new context ID to it, or (active = false)
 * marks it as destroyed. */
void gs_context_set_active(int device, bool active);
/* Returns the number of multiprocessors that kernels of the current context may use. */
int gs_context_multiprocessors(void);

/* Stores the current device's heap for malloc() in kernels in *heap_p. The first call of a context
 * creates the heap; it is destroyed with the context. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY, with NULL in *heap_p. */
CUresult gs_context_heap(struct gs_heap **heap_p);
/* Charges local memory to the device before a launch of `threads` threads that need `bytes` bytes
 * each. Not called for threads that need at most GS_LOCAL_FREE, which is always available. As on a
 * GPU, the device retains the largest amount charged, for at most the maximum number of resident
 * threads, until the context ends. Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
#define GS_LOCAL_FREE 1024
CUresult gs_context_local(int device, uint32_t bytes, uint64_t threads);

/* Kernel output. gs_print_append() buffers text for standard output, and drops it if out of memory;
 * gs_print_error() writes text to standard error; both are gs_print_func callbacks and copy the
 * text. gs_print_flush() writes the buffer to standard output; calls that synchronize with kernels
 * call it. */
void gs_print_append(void *unused, const char *text, size_t len);
void gs_print_error(void *unused, const char *text, size_t len);
void gs_print_flush(void);

/* Returns the name of an error as a static string, "an unknown error" for other values. */
const char *gs_error_name(CUresult code);

#endif /* GS_DRIVER_H */
