/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space of the devices: reserved ranges, mappings with their access rights, and pinned host
 * memory. Calls check ranges here when they are made; queued operations check again, chunk by
 * chunk, under the same lock that unmapping acquires. Memory that was unmapped meanwhile then
 * causes an error of the client and not a crash of the process.
 *
 * Threads: any.
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
	GS_PLACE_PAGEABLE,  /* host memory */
	GS_PLACE_PINNED,    /* host memory */
	GS_PLACE_DEVICE,    /* device memory, mapped with access */
	GS_PLACE_FORBIDDEN, /* a device address without memory or without access */
};

struct gs_space {
	pthread_rwlock_t lock;
	struct gs_spans reserved;
	struct gs_spans mapped;
	struct gs_spans host;
};

/* For the files that implement the memory calls. */
extern struct gs_space gs_space;

/* Finds a free range and maps it with prot; at the hint if that is free. Returns 0 if there is
 * none. Called with the lock held. */
uint64_t gs_space_find(size_t size, size_t alignment, uint64_t hint, int prot);

/* Whether the address is in the range that kernels can access, and thus may be device memory. */
bool gs_space_in_range(uint64_t address);

/* Whether the range is within a single registration: like the driver, copies do not cross the end
 * of registered memory. */
bool gs_space_is_one(uint64_t address, size_t size);

enum gs_place gs_space_place(uint64_t address, size_t size, bool write);

/* Whether a call may use the range as device memory: mapped or pinned. device: the device that must
 * have access; GS_ANY_DEVICE: any device. */
bool gs_space_is_device(uint64_t address, size_t size, bool write, int device);

/* Nothing is unmapped while the lock is held. Not recursive. */
void gs_space_read_lock(void);
void gs_space_read_unlock(void);
/* For the holder of the lock. */
bool gs_space_usable_locked(uint64_t address, size_t size, bool write, int device);

/* Adds a variable of a loaded module, which is in the engine's memory. */
CUresult gs_space_add_variable(uint64_t address, size_t size);
void gs_space_remove_variable(uint64_t address);

/* Charges memory to a device; false if that would exceed the device's memory. */
bool gs_space_charge(int device, size_t size);
void gs_space_discharge(int device, size_t size);
size_t gs_space_charged(int device);
/* Rounds up to whole pages. */
size_t gs_space_pages(size_t size);

void gs_space_reset(void);

#endif /* GS_SPACE_H */
