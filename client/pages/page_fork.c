/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/pages_internal.h"

/* Remote blocks are fetched for the child only, in their present state, because the work may wait
 * for this thread. */
static bool
blocks_save(struct gpc_pages *pages, uint64_t block, uint64_t count)
{
	uint64_t offset = gpc_block_offset(block), length = gpc_block_length(pages, block, count);
	enum gpc_page_state state = gpc_block_state(pages, block);

	if (gpc_block_is_local(state))
		gpc_page_memory_save(&pages->memory, offset, length,
				     state == GPC_PAGE_WRITE_TRACKED);
	return state != GPC_PAGE_REMOTE ||
	       pages->calls->fetch(pages->owner, pages->memory.base + offset, length,
				   pages->memory.saved + offset);
}

void
gpc_pages_save(struct gpc_pages *pages)
{
	if (!gpc_page_memory_begin_saving(&pages->memory))
		return;
	for (uint64_t at = 0, run; at < pages->count; at += run) {
		run = gpc_block_run(pages, at, pages->count);
		/* If fetching fails because the session is over, the child does not get the
		 * blocks. */
		if (!blocks_save(pages, at, run))
			continue;
		for (uint64_t i = at; i < at + run; i++)
			pages->blocks[i] |= GPC_BLOCK_SAVED;
	}
}

void
gpc_pages_restore(struct gpc_pages *pages)
{
	gpc_page_memory_begin_child(&pages->memory);
	for (uint64_t at = 0, run; at < pages->count; at += run) {
		run = 1;
		if (!(pages->blocks[at] & GPC_BLOCK_SAVED))
			continue;
		while (at + run < pages->count && pages->blocks[at + run] & GPC_BLOCK_SAVED)
			run++;
		gpc_page_memory_restore(&pages->memory, gpc_block_offset(at),
					gpc_block_length(pages, at, run));
	}
}

void
gpc_pages_drop_saved(struct gpc_pages *pages)
{
	for (uint64_t i = 0; i < pages->count; i++)
		pages->blocks[i] &= (uint8_t)~GPC_BLOCK_SAVED;
	gpc_page_memory_drop_saved(&pages->memory);
}
