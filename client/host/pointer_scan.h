/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer scan: finds addresses of copy-only blocks (host_block.h) in bytes that kernels are about
 * to see, because kernels must be able to access those blocks (docs/host-memory.md).
 *
 * An address *may be stale* if it may be left over from earlier use of the memory that contains it.
 * Such an address counts only if it names a block that no copy has used.
 * Ownership: the caller owns the struct and its list, which gpc_pointer_scan_fini() frees.
 * Threads: any, one thread per struct at a time. The scanned bytes may be written concurrently.
 * Errors: if memory for the list is exhausted, `failed` is set and no more addresses are added.
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

/* An address that was found, with the bit described above. */
struct gpc_scanned_pointer {
	uint64_t address;
	bool may_be_stale; /* it may be left over from earlier use of the memory */
};

/* A scan and the addresses it has found. A zeroed struct has an empty list. */
struct gpc_pointer_scan {
	const struct gpc_session *session; /* session whose blocks are searched; borrowed */
	uint64_t base, size; /* bounds of all host memory ranges; size 0: there are no copy-only
				blocks, and nothing is found */
	struct gpc_scanned_pointer *list; /* owned; `count` addresses, capacity `room` */
	size_t count, room;
	bool failed;       /* memory for the list was exhausted */
	bool may_be_stale; /* the values checked next may be stale */
};

/* Prepares a scan for blocks of the session. The struct must be zeroed before the first call;
 * addresses already in the list stay there. */
void gpc_pointer_scan_init(struct gpc_pointer_scan *pointers, const struct gpc_session *session);
/* Frees the list and zeroes the struct. */
void gpc_pointer_scan_fini(struct gpc_pointer_scan *pointers);

/* Adds the value to the list if it is the address of a block of the session that must be mapped for
 * kernels. Otherwise has no effect. */
void gpc_pointer_scan_add(struct gpc_pointer_scan *pointers, uint64_t value);

/* Adds the value to the list as gpc_pointer_scan_add() does; inline, because a value is rarely an
 * address. Returns whether the value was added or memory for the list is exhausted. */
static inline bool
gpc_pointer_scan_check(struct gpc_pointer_scan *pointers, uint64_t value)
{
	size_t before = pointers->count;

	if (__builtin_expect(value - pointers->base >= pointers->size, 1))
		return false;
	gpc_pointer_scan_add(pointers, value);
	return pointers->failed || pointers->count > before;
}

/* Returns whether an address at offset `place` of the kernel's parameters may be stale: it is
 * unaligned, or in a large structure. kernel NULL: other bytes, in which only unaligned addresses
 * may be stale. */
bool gpc_pointer_scan_may_be_stale(const struct gp_kernel_info *kernel, size_t place);

/* Scans the bytes and adds the addresses found. Checks all values at multiples of 8 from the first
 * byte, and fewer than GPC_POINTER_SCAN_UNALIGNED bytes at every offset. kernel: the kernel whose
 * parameters the bytes are; NULL: other bytes. */
void gpc_pointer_scan_run(struct gpc_pointer_scan *pointers, const void *bytes, size_t size,
			  const struct gp_kernel_info *kernel);

/* Removes an address from the list and stores it in *name_p. Returns true, or false if the list is
 * empty; *name_p is then unchanged. */
bool gpc_pointer_scan_pop(struct gpc_pointer_scan *pointers, struct gpc_scanned_pointer *name_p);

#endif /* GPC_POINTER_SCAN_H */
