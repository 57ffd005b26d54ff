/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/scratch.h"

#include <stdlib.h>

struct gp_scratch_block {
	struct gp_scratch_block *next;
	void *adopted;
	_Alignas(16) unsigned char bytes[];
};

static struct gp_scratch_block *
block_add(struct gp_scratch *scratch, size_t size)
{
	struct gp_scratch_block *block = calloc(1, sizeof(*block) + size);

	if (!block)
		return NULL;
	block->next = scratch->blocks;
	scratch->blocks = block;
	return block;
}

void *
gp_scratch_alloc(struct gp_scratch *scratch, size_t count, size_t size)
{
	struct gp_scratch_block *block = NULL;

	if (count <= GP_SCRATCH_MAX / size)
		block = block_add(scratch, count * size);
	return block ? block->bytes : NULL;
}

uint64_t *
gp_scratch_alloc_cells(struct gp_scratch *scratch, size_t count, size_t width)
{
	return gp_scratch_alloc(scratch, count, width * sizeof(uint64_t));
}

bool
gp_scratch_adopt(struct gp_scratch *scratch, void *memory)
{
	struct gp_scratch_block *block;

	if (!memory)
		return true;
	block = block_add(scratch, 0);
	if (block)
		block->adopted = memory;
	else
		free(memory);
	return block != NULL;
}

void
gp_scratch_free(struct gp_scratch *scratch)
{
	struct gp_scratch_block *block;

	while ((block = scratch->blocks)) {
		scratch->blocks = block->next;
		free(block->adopted);
		free(block);
	}
}
