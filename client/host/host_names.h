/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses of cold blocks that were found among bytes which kernels are about to see: these must
 * reach the blocks, too (docs/host-memory.md).
 *
 * The caller's own, as the list in it: gpc_host_names_fini() frees that.
 */
#ifndef GPC_HOST_NAMES_H
#define GPC_HOST_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Among fewer bytes than that addresses may begin at any byte, as in packed structures. */
#define GPC_HOST_NAMES_UNALIGNED ((size_t)1024)

/*
 * A parameter of this size is a structure that the program may have filled only in part.  What it
 * has left as it was is often the address of what was copied last: PyTorch launches so, with
 * structures of 404 to 656 bytes that have room for as many dimensions as a tensor may have.
 */
#define GPC_HOST_NAMES_HALF_FILLED 192u

struct gp_kernel_info;
struct gpc_session;

struct gpc_host_name {
	uint64_t address;
	bool doubtful; /* it may be left over */
};

struct gpc_host_names {
	const struct gpc_session *session;
	uint64_t base, size; /* where host memory lies; size 0: there is nothing to find */
	struct gpc_host_name *list;
	size_t count, room;
	bool failed;   /* no memory for the list */
	bool doubtful; /* what comes next counts only of blocks that no copy names */
};

/* For blocks of the session.  What is in the list stays there. */
void gpc_host_names_begin(struct gpc_host_names *names, const struct gpc_session *session);
void gpc_host_names_fini(struct gpc_host_names *names);

void gpc_host_names_add(struct gpc_host_names *names, uint64_t value);

/* A number that may be an address; most are none.  Whether it is one of a cold block. */
static inline bool
gpc_host_names_note(struct gpc_host_names *names, uint64_t value)
{
	size_t before = names->count;

	if (__builtin_expect(value - names->base >= names->size, 1))
		return false;
	gpc_host_names_add(names, value);
	return names->failed || names->count > before;
}

/* Whether an address at this place of the kernel's parameters, or of other bytes (NULL), may be
 * what is left over there: at an odd place, or in a large structure. */
bool gpc_host_names_is_doubtful(const struct gp_kernel_info *kernel, size_t place);

/* All that are aligned to 8 from the first byte on; among less than GPC_HOST_NAMES_UNALIGNED all.
 * kernel: whose parameters the bytes are, or NULL. */
void gpc_host_names_look(struct gpc_host_names *names, const void *bytes, size_t size,
			 const struct gp_kernel_info *kernel);

/* false: the list is empty. */
bool gpc_host_names_take(struct gpc_host_names *names, struct gpc_host_name *name_p);

#endif /* GPC_HOST_NAMES_H */
