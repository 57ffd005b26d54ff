/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of one range of pages, shared by pages.c, which owns the list of ranges, and page_fork.c.
 *
 * Threads: guarded by the lock of pages.c, which all callers hold.
 * Units: blocks, unless noted otherwise; a block has GPC_PAGES_BLOCK bytes.
 */
#ifndef GPC_PAGES_INTERNAL_H
#define GPC_PAGES_INTERNAL_H

#include "client/pages/page_memory.h"
#include "client/pages/pages.h"

/* Bits of a block: its enum gpc_page_state (pages.h), in the bits of GPC_BLOCK_STATE, and flags. */
#define GPC_BLOCK_STATE 0x0f
/* flag: its state is GPC_PAGE_UNUSED and it is part of an allocation, so remote work may write to
 * it */
#define GPC_BLOCK_ALLOCATED 0x20
/* flag: saved for the child of a fork */
#define GPC_BLOCK_SAVED 0x40
/* flag: fetched by a direct thread (page_faults.h) */
#define GPC_BLOCK_DIRECT 0x80

/* A range of pages. gpc_pages_create() creates it, and gpc_pages_destroy() frees it. */
struct gpc_pages {
	struct gpc_page_memory memory;
	uint64_t count; /* number of blocks */
	/* calls, owner, group: as passed to gpc_pages_create() */
	const struct gpc_pages_ops *calls;
	void *owner;
	const void *group;
	/* interval [open_from, open_to) that contains all local blocks and all blocks with
	 * GPC_BLOCK_ALLOCATED; empty: there are none */
	uint64_t open_from, open_to;
	uint64_t unused;        /* number of blocks with GPC_PAGE_UNUSED */
	uint64_t direct;        /* number of blocks with GPC_BLOCK_DIRECT */
	uint64_t write_tracked; /* number of blocks with GPC_PAGE_WRITE_TRACKED */
	/* next: block after those that were made accessible last; UINT64_MAX: none yet. run: number
	 * of blocks to be made accessible at once. A fault at `next`, as of a sequential access,
	 * doubles run; another fault sets it to 1. */
	uint64_t next, run;
	/* bits of each block */
	uint8_t blocks[];
};

/* Returns the state of a block. */
static inline enum gpc_page_state
gpc_block_state(const struct gpc_pages *pages, uint64_t block)
{
	return (enum gpc_page_state)(pages->blocks[block] & GPC_BLOCK_STATE);
}

/* Returns whether a block of this state is accessible here. */
static inline bool
gpc_block_is_local(enum gpc_page_state state)
{
	return state == GPC_PAGE_CLEAN || state == GPC_PAGE_WRITE_TRACKED ||
	       state == GPC_PAGE_DIRTY;
}

/* Returns the offset of a block in its range, in bytes. */
static inline uint64_t
gpc_block_offset(uint64_t block)
{
	return block * GPC_PAGES_BLOCK;
}

/* Returns the size in bytes of `count` consecutive blocks; the last block of a range may be
 * shorter. */
static inline uint64_t
gpc_block_length(const struct gpc_pages *pages, uint64_t block, uint64_t count)
{
	uint64_t left = pages->memory.size - gpc_block_offset(block);

	return gpc_block_offset(count) < left ? gpc_block_offset(count) : left;
}

/* Returns the number of consecutive blocks from `block` on, before `end`, with the same bits. */
static inline uint64_t
gpc_block_run(const struct gpc_pages *pages, uint64_t block, uint64_t end)
{
	uint64_t at = block;

	while (at < end && pages->blocks[at] == pages->blocks[block])
		at++;
	return at - block;
}

/* Called before a fork: saves the content that the child gets. If memory is exhausted, nothing is
 * saved. Remote blocks whose fetch() fails are not saved. Undone by gpc_pages_drop_saved(). */
void gpc_pages_save(struct gpc_pages *pages);
/* Called in the child: makes the saved content the program's memory. Blocks that were not saved
 * stay inaccessible. */
void gpc_pages_restore(struct gpc_pages *pages);
/* Called in both processes after the fork: frees what is left of the saved content. */
void gpc_pages_drop_saved(struct gpc_pages *pages);

#endif /* GPC_PAGES_INTERNAL_H */
