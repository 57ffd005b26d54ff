/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address lookup: describes the memory at an address, of any kind, without a round trip.
 *
 * Threads: any.
 */
#ifndef GPC_ADDRESS_H
#define GPC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;

/* Kind of memory at an address. */
enum gpc_address_kind {
	GPC_ADDRESS_PAGEABLE, /* the application's own memory, unknown to CUDA */
	GPC_ADDRESS_HOST,     /* pinned or registered host memory: host_memory.h */
	GPC_ADDRESS_DEVICE,   /* allocated device memory, or a variable of an image */
	GPC_ADDRESS_INVALID,  /* in an address range of the library, but not allocated */
};

/* Description of the memory at an address. */
struct gpc_address {
	enum gpc_address_kind kind;
	uint64_t base;               /* start of the allocation */
	size_t size;                 /* requested size */
	struct gpc_context *context; /* context of the allocation; NULL for pageable memory */
	unsigned int flags;          /* host memory: flags of its allocation or registration */
	uint64_t host, device; /* host memory: address of base here and for kernels; 0: none */
	bool device_mapped;    /* host memory: accessible to kernels now, at device */
	bool replicated;       /* host memory: and the daemon has a replica there */
	bool copied;           /* host memory: a copy has used it */
	bool speculative;      /* host memory: replicated on suspicion; a copy makes it copy-only */
	uint64_t buffer_id;    /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	uint64_t mapping_base; /* device memory: range of the mapping that contains it */
	size_t mapping_size;
	void *pool;                /* its CUmemoryPool; NULL: none */
	bool contextless;          /* belongs to its device; context is the primary one */
	bool shared;               /* physical or foreign memory: shared with other processes */
	unsigned int handle_types; /* physical memory: CUmemAllocationHandleType */
	bool plain;                /* from cuMemAlloc and the like: exportable to other processes */
	bool managed;              /* managed memory, also mapped here: client/pages/pages.h */
	bool joined;               /* base and size cover adjacent mappings of physical memory */
};

/* Looks up an address and fills in *found. */
void gpc_address_lookup(uint64_t address, struct gpc_address *found);

/* Returns whether [address, address + size) is device memory of one allocation. */
bool gpc_address_is_device(uint64_t address, size_t size);

#endif /* GPC_ADDRESS_H */
