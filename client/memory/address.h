/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address lookup: describes the memory of any kind at an address, without a round trip. Calls the
 * lookups of all allocators (gpc_memory_find(), gpc_pool_find() and so on).
 *
 * Ownership: the description is a copy; the context in it is borrowed and never freed.
 * Threads: any; called without the pools' lock (pool.h). The memory may be freed by another thread
 * after the lookup.
 * Units: bytes.
 */
#ifndef GPC_ADDRESS_H
#define GPC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

struct gpc_context;

/* Kind of memory at an address. */
enum gpc_address_kind {
	GPC_ADDRESS_PAGEABLE, /* the application's own memory, unknown to CUDA */
	GPC_ADDRESS_HOST,     /* pinned or registered host memory: host_memory.h */
	GPC_ADDRESS_DEVICE,   /* device memory: allocated, or a variable of an image (loaded device
				 code) */
	/* in an address range that the library has reserved, but not allocated or not accessible */
	GPC_ADDRESS_INVALID,
};

/* Description of the memory at an address. Members that do not apply to the kind are 0. */
struct gpc_address {
	enum gpc_address_kind kind;
	/* start of the allocation; of host memory that was looked up by an address of kernels only,
	 * the start as kernels use it */
	uint64_t base;
	size_t size; /* requested size */
	/* context of the allocation; NULL: GPC_ADDRESS_PAGEABLE and GPC_ADDRESS_INVALID */
	struct gpc_context *context;
	unsigned int flags; /* host memory: flags of its allocation or registration
			       (CU_MEMHOSTALLOC_*, CU_MEMHOSTREGISTER_*) */
	/* host memory: addresses of the start in the program and for kernels; 0: none */
	uint64_t host, device;
	bool device_mapped; /* host memory: kernels can access it now, at `device` */
	bool replicated;  /* host memory: device_mapped, and the worker has a replica at `device` */
	bool copied;      /* host memory: the program has passed it to a copy */
	bool speculative; /* host memory: replicated only because of a pointer that may be stale; a
			     copy makes it copy-only (host/host_block.h) */
	uint64_t buffer_id; /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	/* start of the mapping that contains the allocation; of physical memory, of the single
	 * mapping at the address */
	uint64_t mapping_base;
	size_t mapping_size; /* size of that mapping */
	void *pool;          /* CUmemoryPool that it was allocated from; NULL: none */
	/* belongs to a device instead of a context; `context` is then the primary one of that
	 * device */
	bool contextless;
	/* physical memory, or memory of a pool, that other processes may have mapped */
	bool shared;
	/* physical memory and pools: mask of the CUmemAllocationHandleType with which it may be
	 * exported */
	unsigned int handle_types;
	/* allocated by cuMemAlloc() and the like, so cuIpcGetMemHandle() can export it */
	bool plain;
	bool managed; /* managed memory, which is also mapped in this process (client/pages/pages.h)
		       */
	bool joined; /* base and size cover adjacent mappings of physical memory, not one allocation
		      */
};

/* Looks up an address and fills in *found. Memory that CUDA does not know is reported as
 * GPC_ADDRESS_PAGEABLE. */
void gpc_address_lookup(uint64_t address, struct gpc_address *found);

/* Returns whether [address, address + size) is device memory of one allocation, or of adjacent
 * mappings of physical memory. */
bool gpc_address_is_device(uint64_t address, size_t size);

/* Returns the address rounded down to a page of the process. */
static inline uint64_t
gpc_page_below(uint64_t address)
{
	return address & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Returns the address rounded up to a page of the process. */
static inline uint64_t
gpc_page_above(uint64_t address)
{
	return gpc_page_below(address + (uint64_t)sysconf(_SC_PAGESIZE) - 1);
}

#endif /* GPC_ADDRESS_H */
