/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space: what is reserved, what is mapped with which access, and which host memory is
 * pinned. Calls check ranges here when they are made; queued operations check again, chunk by
 * chunk and under the same lock that unmapping takes, so that memory unmapped meanwhile is a fault
 * of the client and not of the process. Any thread may call.
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
	GS_PLACE_PAGEABLE,  /* of the host */
	GS_PLACE_PINNED,    /* of the host */
	GS_PLACE_DEVICE,    /* mapped with access */
	GS_PLACE_FORBIDDEN, /* a device address with no memory or no access behind it */
};

struct gs_space {
	pthread_rwlock_t lock;
	struct gs_spans reserved;
	struct gs_spans mapped;
	struct gs_spans host;
};

/* For the files that implement the memory calls. */
extern struct gs_space gs_space;

/* A free range, mapped with prot; at the hint if that is free. 0: there is none. Lock held. */
uint64_t gs_space_find(size_t size, size_t alignment, uint64_t hint, int prot);

/* Whether kernels reach what is there: only then may it be theirs. */
bool gs_space_in_range(uint64_t address);

/* Not over the end of registered memory: the driver copies within one registration. */
bool gs_space_is_one(uint64_t address, size_t size);

enum gs_place gs_space_place(uint64_t address, size_t size, bool write);

/* Whether a call may use the range as device memory: mapped or pinned.  Of the devices, the one
 * that shall reach it; GS_ANY_DEVICE: whichever may. */
bool gs_space_is_device(uint64_t address, size_t size, bool write, int device);

/* Between these two nothing is unmapped. Not recursive. */
void gs_space_read_lock(void);
void gs_space_read_unlock(void);
/* For the holder of the lock. */
bool gs_space_usable_locked(uint64_t address, size_t size, bool write, int device);

/* Variables of a loaded module, which lie in the engine's memory. */
CUresult gs_space_add_variable(uint64_t address, size_t size);
void gs_space_remove_variable(uint64_t address);

/* A device's memory in use; false: it would be more than there is. */
bool gs_space_charge(int device, size_t size);
void gs_space_discharge(int device, size_t size);
size_t gs_space_charged(int device);
/* Rounded up to whole pages. */
size_t gs_space_pages(size_t size);

void gs_space_reset(void);

#endif /* GS_SPACE_H */
