/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of cold blocks that were found among bytes which kernels are about to see: these must
 * reach the blocks, too (docs/host-memory.md).
 *
 * The caller's own, as the list in it: gpc_pointer_scan_fini() frees that.
 */
#ifndef GPC_HOST_NAMES_H
#define GPC_HOST_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Among fewer bytes than that addresses may begin at any byte, as in packed structures. */
#define GPC_POINTER_SCAN_UNALIGNED ((size_t)1024)

/*
 * A parameter of this size is a structure that the program may have filled only in part.  What it
 * has left as it was is often the address of what was copied last: PyTorch launches so, with
 * structures of 404 to 656 bytes that have room for as many dimensions as a tensor may have.
 */
#define GPC_POINTER_SCAN_HALF_FILLED 192u

struct gp_kernel_info;
struct gpc_session;

struct gpc_scanned_pointer {
	uint64_t address;
	bool may_be_stale; /* it may be left over */
};

struct gpc_pointer_scan {
	const struct gpc_session *session;
	uint64_t base, size; /* where host memory lies; size 0: there is nothing to find */
	struct gpc_scanned_pointer *list;
	size_t count, room;
	bool failed;       /* no memory for the list */
	bool may_be_stale; /* what comes next counts only of blocks that no copy names */
};

/* For blocks of the session.  What is in the list stays there. */
void gpc_pointer_scan_init(struct gpc_pointer_scan *pointers, const struct gpc_session *session);
void gpc_pointer_scan_fini(struct gpc_pointer_scan *pointers);

void gpc_pointer_scan_add(struct gpc_pointer_scan *pointers, uint64_t value);

/* A number that may be an address; most are none.  Whether it is one of a cold block. */
static inline bool
gpc_pointer_scan_check(struct gpc_pointer_scan *pointers, uint64_t value)
{
	size_t before = pointers->count;

	if (__builtin_expect(value - pointers->base >= pointers->size, 1))
		return false;
	gpc_pointer_scan_add(pointers, value);
	return pointers->failed || pointers->count > before;
}

/* Whether an address at this place of the kernel's parameters, or of other bytes (NULL), may be
 * what is left over there: at an odd place, or in a large structure. */
bool gpc_pointer_scan_may_be_stale(const struct gp_kernel_info *kernel, size_t place);

/* All that are aligned to 8 from the first byte on; among less than GPC_POINTER_SCAN_UNALIGNED all.
 * kernel: whose parameters the bytes are, or NULL. */
void gpc_pointer_scan_run(struct gpc_pointer_scan *pointers, const void *bytes, size_t size,
			  const struct gp_kernel_info *kernel);

/* false: the list is empty. */
bool gpc_pointer_scan_pop(struct gpc_pointer_scan *pointers, struct gpc_scanned_pointer *name_p);

#endif /* GPC_HOST_NAMES_H */
