/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer scan: finds addresses of copy-only blocks (host_block.h) in bytes that kernels are about
 * to see, because kernels must be able to access those blocks (docs/host-memory.md).
 *
 * An address *may be stale* if it may be left over from earlier use of the memory in which it was
 * found. Such an address counts only if no copy has used the block that it names.
 *
 * Ownership: the caller owns the struct and its list, which gpc_pointer_scan_fini() frees.
 * Threads: any, one thread per struct at a time. The scanned bytes may be written concurrently.
 * Errors: if memory for the list is exhausted, `failed` is set and no more addresses are added.
 */
#ifndef GPC_POINTER_SCAN_H
#define GPC_POINTER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* If fewer bytes than this are scanned, addresses are found at any byte offset, as in packed
 * structures; otherwise only at multiples of 8. */
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

/* A scan and the addresses that it has found. A zeroed struct has an empty list and finds
 * nothing. */
struct gpc_pointer_scan {
	const struct gpc_session *session; /* session whose blocks are searched; borrowed */
	/* bounds of the host memory ranges of all sessions; size 0: there are no copy-only blocks,
	 * and nothing is found */
	uint64_t base, size;
	struct gpc_scanned_pointer *list; /* owned; `count` addresses, space for `capacity` */
	size_t count, capacity;
	bool failed; /* memory for the list was exhausted */
	/* set by the caller of gpc_pointer_scan_add(): the values checked next may be stale */
	bool may_be_stale;
};

/* Prepares a scan for blocks of the session. The struct must be zeroed before the first call.
 * Addresses already in the list stay there; `failed` and `may_be_stale` become false. Called again
 * before each read of the bytes, because blocks may have been added since. */
void gpc_pointer_scan_init(struct gpc_pointer_scan *pointers, const struct gpc_session *session);
/* Frees the list and zeroes the struct. */
void gpc_pointer_scan_fini(struct gpc_pointer_scan *pointers);

/* Adds the value to the list if it is an address in a block of the session that must be mapped for
 * kernels because of it. Otherwise has no effect. */
void gpc_pointer_scan_add(struct gpc_pointer_scan *pointers, uint64_t value);

/* Like gpc_pointer_scan_add(), but inline, because a value is rarely an address. Returns whether
 * the value was added, or memory for the list is exhausted. */
static inline bool
gpc_pointer_scan_check(struct gpc_pointer_scan *pointers, uint64_t value)
{
	size_t before = pointers->count;

	if (__builtin_expect(value - pointers->base >= pointers->size, 1))
		return false;
	gpc_pointer_scan_add(pointers, value);
	return pointers->failed || pointers->count > before;
}

/* Returns whether an address at the offset `place` may be stale. kernel: the bytes are this
 * kernel's parameters, where an address is so if it is unaligned or in a structure of
 * GPC_POINTER_SCAN_HALF_FILLED bytes or more. NULL: other bytes, where an address is so only if it
 * is unaligned. */
bool gpc_pointer_scan_may_be_stale(const struct gp_kernel_info *kernel, size_t place);

/* Scans the bytes and adds the addresses found to the list. Checks the values at all multiples of 8
 * from the first byte; in fewer than GPC_POINTER_SCAN_UNALIGNED bytes, the values at every offset.
 * kernel: the kernel whose parameters the bytes are; NULL: other bytes. */
void gpc_pointer_scan_run(struct gpc_pointer_scan *pointers, const void *bytes, size_t size,
			  const struct gp_kernel_info *kernel);

/* Removes an address from the list and stores it in *name_p. Returns true, or false if the list is
 * empty; *name_p is then unchanged. */
bool gpc_pointer_scan_pop(struct gpc_pointer_scan *pointers, struct gpc_scanned_pointer *name_p);

#endif /* GPC_POINTER_SCAN_H */
