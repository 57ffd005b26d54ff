/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of one range of pages, shared by pages.c, which has the list of ranges, and page_fork.c.
 *
 * Threads: guarded by the lock of pages.c, which all callers hold.
 */
#ifndef GPC_PAGES_INTERNAL_H
#define GPC_PAGES_INTERNAL_H

#include "client/pages/page_memory.h"
#include "client/pages/pages.h"

/* Bits of a block: its state; whether it is unused and part of an allocation, so that work may
 * write to it; whether the child of a fork gets it; and whether it was fetched by a thread with
 * direct faults. */
#define GPC_BLOCK_STATE 0x0f
#define GPC_BLOCK_ALLOCATED 0x20
#define GPC_BLOCK_SAVED 0x40
#define GPC_BLOCK_DIRECT 0x80

/* A range of pages. */
struct gpc_pages {
	struct gpc_page_memory memory;
	uint64_t count; /* number of blocks */
	const struct gpc_pages_ops *calls;
	void *owner;
	const void *group;
	uint64_t open_from, open_to; /* interval that contains all local blocks */
	uint64_t unused;             /* number of blocks with GPC_PAGE_UNUSED */
	uint64_t direct;             /* number of blocks with GPC_BLOCK_DIRECT */
	uint64_t fresh;              /* number of blocks with GPC_PAGE_FRESH */
	uint64_t next, run;          /* block after the last ones opened, and number of those */
	uint8_t blocks[];
};

static inline enum gpc_page_state
gpc_block_state(const struct gpc_pages *pages, uint64_t block)
{
	return (enum gpc_page_state)(pages->blocks[block] & GPC_BLOCK_STATE);
}

static inline bool
gpc_block_is_local(enum gpc_page_state state)
{
	return state == GPC_PAGE_CLEAN || state == GPC_PAGE_FRESH || state == GPC_PAGE_DIRTY;
}

static inline uint64_t
gpc_block_offset(uint64_t block)
{
	return block * GPC_PAGES_BLOCK;
}

/* Returns the size in bytes of consecutive blocks; the last block of a range may be shorter. */
static inline uint64_t
gpc_block_length(const struct gpc_pages *pages, uint64_t block, uint64_t count)
{
	uint64_t left = pages->memory.size - gpc_block_offset(block);

	return gpc_block_offset(count) < left ? gpc_block_offset(count) : left;
}

/* Returns the number of blocks from this one on, before end, with the same state. */
static inline uint64_t
gpc_block_run(const struct gpc_pages *pages, uint64_t block, uint64_t end)
{
	uint64_t at = block;

	while (at < end && pages->blocks[at] == pages->blocks[block])
		at++;
	return at - block;
}

/* Save what the child of a fork gets, before the fork; restore it in the child; and drop it after
 * the fork in both processes. */
void gpc_pages_save(struct gpc_pages *pages);
void gpc_pages_restore(struct gpc_pages *pages);
void gpc_pages_drop_saved(struct gpc_pages *pages);

#endif /* GPC_PAGES_INTERNAL_H */
