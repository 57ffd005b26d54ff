/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/inflight_writes.h"

#include <stdlib.h>
#include <utlist.h>

struct run {
	uint64_t address;
	uint32_t size, same; /* as in struct gp_change */
};

struct gpc_inflight_writes {
	struct gpc_inflight_writes *prev, *next;
	uint64_t record;
	size_t count;
	struct run runs[]; /* sorted by address */
};

static int
compare_addresses(const void *a, const void *b)
{
	const struct run *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static void
run_count(void *arg, const struct gp_change *change)
{
	++*(size_t *)arg;
}

static void
run_append(void *arg, const struct gp_change *change)
{
	struct gpc_inflight_writes *sent = arg;

	sent->runs[sent->count++] = (struct run){ change->address, change->size, change->same };
}

void
gpc_inflight_writes_add(struct gpc_inflight_writes **list, uint64_t record,
			const struct gp_changes *changes)
{
	struct gpc_inflight_writes *sent;
	size_t count = 0;

	gp_changes_for_each(changes->bytes, changes->size, run_count, &count);
	sent = calloc(1, sizeof(*sent) + count * sizeof(struct run));
	if (!sent)
		return;
	sent->record = record;
	gp_changes_for_each(changes->bytes, changes->size, run_append, sent);
	qsort(sent->runs, sent->count, sizeof(struct run), compare_addresses);
	DL_APPEND(*list, sent);
}

/* Returns the first run that ends after the address. */
static size_t
runs_find(const struct gpc_inflight_writes *sent, uint64_t address)
{
	size_t low = 0, high = sent->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sent->runs[middle].address + sent->runs[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool
gpc_inflight_writes_overlap(const struct gpc_inflight_writes *list, uint64_t record,
			    uint64_t address, uint64_t size)
{
	for (const struct gpc_inflight_writes *sent = list; sent; sent = sent->next) {
		size_t i = sent->record > record ? runs_find(sent, address) : sent->count;

		if (i < sent->count && sent->runs[i].address < address + size)
			return true;
	}
	return false;
}

static uint32_t
size_to_mask(uint64_t size)
{
	return size >= 32 ? UINT32_MAX : (UINT32_C(1) << size) - 1;
}

/* Returns the mask of the run's changed bytes from the address on. */
static uint32_t
run_mask(const struct run *run, uint64_t address, uint32_t size)
{
	uint64_t end = run->address + run->size, last = address + size;

	if (run->address >= address) {
		uint64_t length = (end < last ? end : last) - run->address;

		return (size_to_mask(length) & ~run->same) << (run->address - address);
	}
	return size_to_mask((end < last ? end : last) - address) &
	       ~(run->same ? run->same >> (address - run->address) : 0);
}

uint32_t
gpc_inflight_writes_mask(const struct gpc_inflight_writes *list, uint64_t record, uint64_t address,
			 uint32_t size)
{
	uint32_t mask = 0;

	for (const struct gpc_inflight_writes *sent = list; sent; sent = sent->next) {
		size_t i = sent->record > record ? runs_find(sent, address) : sent->count;

		for (; i < sent->count && sent->runs[i].address < address + size; i++)
			mask |= run_mask(&sent->runs[i], address, size);
	}
	return mask;
}

void
gpc_inflight_writes_drop(struct gpc_inflight_writes **list, uint64_t records)
{
	struct gpc_inflight_writes *sent, *next;

	DL_FOREACH_SAFE(*list, sent, next)
	{
		if (sent->record > records)
			continue;
		DL_DELETE(*list, sent);
		free(sent);
	}
}
