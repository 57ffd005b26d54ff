/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of the session: a heap over the window, kept by the client.  Small allocations are
 * cut from mapped chunks without a round trip; large ones are chunks of their own (gpMemoryMap).
 * Freed memory is used again only when the work posted before the free is done.  Any thread.
 */
#ifndef GPC_MEMORY_H
#define GPC_MEMORY_H

#include "protocol/status.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_heap_range;
struct gpc_session;

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
	uint64_t buffer_id;          /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	uint64_t mapping_base;       /* of device memory: what gpMemoryMap mapped */
	size_t mapping_size;
	void *pool;       /* the CUmemoryPool it comes from; NULL: from none */
	bool contextless; /* it belongs to its device; context is the primary one */
};

/* Finds out what an address is, locally. */
void gpc_address_lookup(uint64_t address, struct gpc_address *found);

/* Whether [address, address + size) is device memory of one allocation. */
bool gpc_address_is_device(uint64_t address, size_t size);

/* Never used twice in this process. */
uint64_t gpc_memory_next_id(void);

/* Context activation: where the context's first heap chunk goes (gpContextCreate maps it).
 * size 0: none is wanted. */
void gpc_memory_reserve_heap(struct gpc_context *context, uint64_t *base_p, uint64_t *size_p);
/* It was mapped, and small allocations are cut from it, or it was not. */
void gpc_memory_settle_heap(struct gpc_context *context, uint64_t base, uint64_t size, bool mapped);

/* So often may other threads take what one has mapped for its own block, before it gives up. */
#define GPC_GROW_TRIES 16

/* For memory pools.  CUDA_ERROR_OUT_OF_MEMORY: the quota, the device or the window has no room. */
CUresult gpc_memory_map(struct gpc_context *context, uint64_t size, struct gpc_heap_range *range_p);
/* After all work posted before; nobody needs to wait for it. */
void gpc_memory_unmap(struct gpc_context *context, const struct gpc_heap_range *range);
/* Asks how far the work is, and takes the answer to what was asked before. */
void gpc_memory_poll(struct gpc_context *context);
/* Waits for all work posted; and gives everything back besides that nothing uses. */
CUresult gpc_memory_settle(struct gpc_context *context);
CUresult gpc_memory_reclaim(struct gpc_context *context);
/* Addresses of the window at which nothing is mapped, for the caller to map at. */
CUresult gpc_memory_take_addresses(struct gpc_context *context, uint64_t size,
				   struct gpc_heap_range *range_p);
void gpc_memory_give_addresses(struct gpc_context *context, const struct gpc_heap_range *range);
/* cuMemFree of what is no pool's. */
CUresult gpc_memory_free(struct gpc_context *context, uint64_t address);

/* A variable of an image became known in a context: lookups find it from now on, until all images
 * and contexts with which it was named are forgotten, and so long its pages are reserved.  -ENOMEM,
 * -EAGAIN: or this process may map no more. GP_E_INVALID: another variable, or memory of this
 * process, the window too, lies there; nothing is known of it. */
GP_MUST_CHECK int gpc_memory_add_global(struct gpc_context *context, uint64_t address, size_t size,
					uint32_t image);
void gpc_memory_forget_image(uint32_t image);

/* Frees all memory, host memory included, of a context that is being destroyed or reset; before
 * gpContextDestroy is posted. */
void gpc_memory_forget_context(struct gpc_context *context);

#endif /* GPC_MEMORY_H */
