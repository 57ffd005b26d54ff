/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space of the devices: reserved ranges, mappings with their access rights, and pinned host
 * memory.
 *
 * Calls check ranges here when they are made. Queued operations check again, chunk by chunk, under
 * the lock that unmapping also acquires. If memory was unmapped in the meantime, the operation
 * fails with a CUDA error instead of crashing the process.
 * Threads: any. gs_space.lock protects all lists and is acquired by the functions themselves,
 * unless their comment requires the caller to hold it.
 * Units: sizes are in bytes.
 */
#ifndef GS_SPACE_H
#define GS_SPACE_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/memory/spans.h"

#include <pthread.h>

#define GS_GRANULARITY ((size_t)2 << 20)
#define GS_ANY_DEVICE (-1)

enum gs_access {
	GS_ACCESS_NONE = 0,
	GS_ACCESS_READ = 1,
	GS_ACCESS_READ_WRITE = 3,
};

enum gs_place {
	GS_PLACE_PAGEABLE,  /* host memory that is not registered */
	GS_PLACE_PINNED,    /* host memory of cuMemHostAlloc() or cuMemHostRegister() */
	GS_PLACE_DEVICE,    /* device memory, mapped with access */
	GS_PLACE_FORBIDDEN, /* a device address without memory or without access */
};

struct gs_space {
	pthread_rwlock_t lock;
	struct gs_spans reserved;
	struct gs_spans mapped;
	struct gs_spans host;
};

/* Used only by the files that implement the memory calls. */
extern struct gs_space gs_space;

/* Finds an unreserved range and maps it with the access `prot` of mmap(); at the hint if that range
 * is free. Returns its address, or 0 if there is none. The caller holds the write lock. */
uint64_t gs_space_find(size_t size, size_t alignment, uint64_t hint, int prot);

/* Returns whether the address is in the range that kernels can access, and thus may be device
 * memory. */
bool gs_space_in_range(uint64_t address);

/* Returns whether the range is within a single registration of host memory, or outside of all. As
 * with NVIDIA's driver, copies do not cross the end of registered memory. */
bool gs_space_is_one(uint64_t address, size_t size);

/* Returns the kind of memory that the range is in. write: whether write access is needed. */
enum gs_place gs_space_place(uint64_t address, size_t size, bool write);

/* Returns whether a call may use the range as device memory: mapped with access, or pinned. device:
 * the device that must have access; GS_ANY_DEVICE: any device. */
bool gs_space_is_device(uint64_t address, size_t size, bool write, int device);

/* gs_space_read_lock() acquires the lock for reading, which prevents all unmapping until
 * gs_space_read_unlock(). Not recursive. */
void gs_space_read_lock(void);
void gs_space_read_unlock(void);
/* Like gs_space_is_device(), for a caller that holds the lock. */
bool gs_space_usable_locked(uint64_t address, size_t size, bool write, int device);

/* Registers a variable of a loaded module, which is in the engine's memory. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. gs_space_remove_variable() removes the entry. */
CUresult gs_space_add_variable(uint64_t address, size_t size);
void gs_space_remove_variable(uint64_t address);

/* Charges memory to a device. Returns true, or false without charging if that would exceed the
 * device's memory. gs_space_discharge() subtracts it again. */
bool gs_space_charge(int device, size_t size);
void gs_space_discharge(int device, size_t size);
/* Returns the bytes that are charged to the device. */
size_t gs_space_charged(int device);
/* Returns the size rounded up to whole pages. */
size_t gs_space_pages(size_t size);

/* Unmaps and frees all memory except variables when the context ends. */
void gs_space_reset(void);

#endif /* GS_SPACE_H */
