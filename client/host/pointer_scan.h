/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer scan: finds addresses of copy-only blocks in bytes that kernels are about to see, because
 * kernels must be able to access those blocks (docs/host-memory.md).
 *
 * Ownership: the caller owns the struct and its list, which gpc_pointer_scan_fini() frees.
 * Threads: any, one thread per struct at a time.
 * Errors: if memory is exhausted, `failed` is set.
 */
#ifndef GPC_POINTER_SCAN_H
#define GPC_POINTER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In fewer bytes than this, addresses are found at any byte offset, as in packed structures. */
#define GPC_POINTER_SCAN_UNALIGNED ((size_t)1024)

/*
 * A kernel parameter of this size or more is a structure that the program may have filled only in
 * part. The unwritten rest often still contains the address of the most recently copied buffer:
 * PyTorch launches with structures of 404 to 656 bytes, which have room for the largest number of
 * dimensions of a tensor.
 */
#define GPC_POINTER_SCAN_HALF_FILLED 192u

struct gp_kernel_info;
struct gpc_session;

/* An address that was found. */
struct gpc_scanned_pointer {
	uint64_t address;
	bool may_be_stale; /* it may be left over from earlier use of the memory */
};

/* A scan and the addresses it has found. */
struct gpc_pointer_scan {
	const struct gpc_session *session;
	uint64_t base, size; /* bounds of host memory; size 0: nothing to find */
	struct gpc_scanned_pointer *list;
	size_t count, room;
	bool failed;       /* memory for the list was exhausted */
	bool may_be_stale; /* addresses found next count only for blocks that no copy has used */
};

/* Prepares a scan for blocks of the session. Addresses already in the list stay there. */
void gpc_pointer_scan_init(struct gpc_pointer_scan *pointers, const struct gpc_session *session);
void gpc_pointer_scan_fini(struct gpc_pointer_scan *pointers);

/* Adds the value to the list if it is the address of a block that must be mapped. */
void gpc_pointer_scan_add(struct gpc_pointer_scan *pointers, uint64_t value);

/* Checks a value, which is rarely an address. Returns whether it is one of a copy-only block. */
static inline bool
gpc_pointer_scan_check(struct gpc_pointer_scan *pointers, uint64_t value)
{
	size_t before = pointers->count;

	if (__builtin_expect(value - pointers->base >= pointers->size, 1))
		return false;
	gpc_pointer_scan_add(pointers, value);
	return pointers->failed || pointers->count > before;
}

/* Returns whether an address at this offset of the kernel's parameters, or of other bytes (kernel
 * NULL), may be stale: it is unaligned, or in a large structure. */
bool gpc_pointer_scan_may_be_stale(const struct gp_kernel_info *kernel, size_t place);

/* Checks all values aligned to 8 relative to the first byte; fewer than GPC_POINTER_SCAN_UNALIGNED
 * bytes are checked at every offset. kernel: the kernel whose parameters these are, or NULL. */
void gpc_pointer_scan_run(struct gpc_pointer_scan *pointers, const void *bytes, size_t size,
			  const struct gp_kernel_info *kernel);

/* Removes an address from the list. Returns false if the list is empty. */
bool gpc_pointer_scan_pop(struct gpc_pointer_scan *pointers, struct gpc_scanned_pointer *name_p);

#endif /* GPC_POINTER_SCAN_H */
