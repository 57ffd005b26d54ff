/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the driver share: the process-wide state and the checks at every call's start.
 * Each device has one (primary) context. A kernel's fault is sticky for the process: gs_fail()
 * keeps the first one, and every later call that needs a context returns it. Any thread may call.
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

/* CUDA_SUCCESS after cuInit. */
CUresult gs_enter_device(void);
/* The same, and a context is current to the thread, alive, and no kernel has failed. */
CUresult gs_enter(void);
CUresult gs_check_device(CUdevice device);

/* Keeps the first code and text, prints one line, and stops what runs on any stream. */
void gs_fail(CUresult code, const char *who, const char *why);
CUresult gs_failure(void);

/* Written by cuInit; memory and multiprocessors are each device's. */
int gs_device_count(void);
/* Whether each device reaches the memory of all others. */
bool gs_device_peers(void);
size_t gs_device_memory(void);
int gs_device_multiprocessors(void);

/* The context that is current to the thread, which may be one made of a green context. */
CUcontext gs_context_current(void);
CUcontext gs_context_primary(int device);
bool gs_context_is_primary(CUcontext ctx);
/* Whose context that is; -1: it is none. */
int gs_context_device(CUcontext ctx);
/* Of the current context; 0 without one. */
int gs_device_current(void);
/* The primary context comes to life, with a new number, or ends. */
void gs_context_set_active(int device, bool active);
/* Of the current context. */
int gs_context_multiprocessors(void);

/* For malloc() in kernels, of the current device; made when the first kernel that needs it is
 * launched. */
CUresult gs_context_heap(struct gs_heap **heap_p);
/* Before a launch of so many threads, each with so many bytes of local memory: the device keeps
 * that until the context ends, as hardware does, for as many of them as it can have at a time.
 * GS_LOCAL_FREE bytes for each the context has anyway. */
#define GS_LOCAL_FREE 1024
CUresult gs_context_local(int device, uint32_t bytes, uint64_t threads);

/* What kernels print is kept until a call that waits for them. */
void gs_print_append(void *unused, const char *text, size_t len);
void gs_print_error(void *unused, const char *text, size_t len);
void gs_print_flush(void);

const char *gs_error_name(CUresult code);

#endif /* GS_DRIVER_H */
