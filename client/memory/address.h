/* SPDX-License-Identifier: Apache-2.0 */
/* What is known here of an address, whatever kind of memory it is.  Any thread may ask. */
#ifndef GPC_ADDRESS_H
#define GPC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;

/* What an address is. */
enum gpc_address_kind {
	GPC_ADDRESS_PAGEABLE, /* the application's own memory: nothing known of it */
	GPC_ADDRESS_HOST,     /* pinned or registered: host_memory.h */
	GPC_ADDRESS_DEVICE,   /* allocated device memory, or a variable of an image */
	GPC_ADDRESS_INVALID,  /* inside the window or freed, but not allocated */
};

struct gpc_address {
	enum gpc_address_kind kind;
	uint64_t base;               /* of the allocation */
	size_t size;                 /* as asked for */
	struct gpc_context *context; /* where it was made; NULL for pageable */
	unsigned int flags;          /* of host memory */
	uint64_t host, device;       /* the same: where base is here and for kernels; 0: nowhere */
	bool device_mapped;          /* the same: kernels reach it now, at device */
	bool replicated;             /* the same, and the daemon has a copy of it there */
	bool copied;                 /* the same: a copy has been given it */
	bool speculative;            /* the same, but a copy makes it cold again */
	uint64_t buffer_id;          /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	uint64_t mapping_base;       /* of device memory: what gpMemoryMap mapped */
	size_t mapping_size;
	void *pool;       /* the CUmemoryPool it comes from; NULL: from none */
	bool contextless; /* it belongs to its device; context is the primary one */
	bool shared;      /* of physical memory or another process's: others have it, too */
	unsigned int handle_types; /* of physical memory: CUmemAllocationHandleType */
	bool plain;                /* of cuMemAlloc and its like: other processes can be given it */
	bool managed;              /* it is here, too: client/pages/pages.h */
	bool joined; /* base and size are of mappings side by side, each of physical memory */
};

/* Finds out what an address is, locally. */
void gpc_address_lookup(uint64_t address, struct gpc_address *found);

/* Whether [address, address + size) is device memory of one allocation. */
bool gpc_address_is_device(uint64_t address, size_t size);

#endif /* GPC_ADDRESS_H */
