/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One range of pages, as pages.c, which has the list of them and its lock, and page_fork.c share
 * it.  Who calls holds the lock.
 */
#ifndef GPC_PAGES_STATE_H
#define GPC_PAGES_STATE_H

#include "client/pages/page_memory.h"
#include "client/pages/pages.h"

/* Of a block's byte: its state; whether it is unused, and of an allocation, so that work may write
 * it; whether the child of a fork gets it; and whether a thread fetched it whose faults are direct.
 */
#define GPC_BLOCK_STATE 0x0f
#define GPC_BLOCK_ALLOCATED 0x20
#define GPC_BLOCK_SAVED 0x40
#define GPC_BLOCK_DIRECT 0x80

struct gpc_pages {
	struct gpc_page_memory memory;
	uint64_t count; /* of blocks */
	const struct gpc_pages_ops *calls;
	void *owner;
	const void *group;
	uint64_t open_from, open_to; /* no other blocks are here */
	uint64_t unused;             /* how many are GPC_PAGE_UNUSED */
	uint64_t direct;             /* how many are GPC_BLOCK_DIRECT */
	uint64_t fresh;              /* how many are GPC_PAGE_FRESH */
	uint64_t next, run; /* the block behind the last that was opened; how many they were */
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

/* Of blocks, which may be the last ones. */
static inline uint64_t
gpc_block_length(const struct gpc_pages *pages, uint64_t block, uint64_t count)
{
	uint64_t left = pages->memory.size - gpc_block_offset(block);

	return gpc_block_offset(count) < left ? gpc_block_offset(count) : left;
}

/* How many blocks from this one on, before end, are in the same state. */
static inline uint64_t
gpc_block_run(const struct gpc_pages *pages, uint64_t block, uint64_t end)
{
	uint64_t at = block;

	while (at < end && pages->blocks[at] == pages->blocks[block])
		at++;
	return at - block;
}

/* What the child of a fork gets, in front of the fork; in the child; and behind it in both. */
void gpc_pages_save(struct gpc_pages *pages);
void gpc_pages_restore(struct gpc_pages *pages);
void gpc_pages_drop_saved(struct gpc_pages *pages);

#endif /* GPC_PAGES_STATE_H */
