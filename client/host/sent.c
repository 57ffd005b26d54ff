/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/sent.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct gpc_sent {
	struct gpc_sent *prev, *next;
	uint64_t record;
	uint8_t *bytes;
	size_t count;
	struct gp_change runs[]; /* in the bytes, by address */
};

static int
by_address(const void *a, const void *b)
{
	const struct gp_change *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static size_t
count_of(const struct gp_changes *changes)
{
	struct gp_change run;
	size_t at = 0, count = 0;

	while (gp_changes_next(changes->bytes, changes->size, &at, &run) > 0)
		count++;
	return count;
}

void
gpc_sent_remember(struct gpc_sent **list, uint64_t record, const struct gp_changes *changes)
{
	size_t count = count_of(changes), at = 0;
	struct gpc_sent *sent = calloc(1, sizeof(*sent) + count * sizeof(struct gp_change));

	if (!sent)
		return;
	sent->bytes = malloc(changes->size);
	if (!sent->bytes) {
		free(sent);
		return;
	}
	memcpy(sent->bytes, changes->bytes, changes->size);
	sent->record = record;
	while (sent->count < count &&
	       gp_changes_next(sent->bytes, changes->size, &at, &sent->runs[sent->count]) > 0)
		sent->count++;
	qsort(sent->runs, count, sizeof(struct gp_change), by_address);
	DL_APPEND(*list, sent);
}

/* The first run that ends behind the address. */
static size_t
find(const struct gpc_sent *sent, uint64_t address)
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

static void
keep(const struct gpc_sent *sent, uint64_t address, uint8_t *bytes, uint64_t size)
{
	uint64_t end = address + size;

	for (size_t i = find(sent, address); i < sent->count && sent->runs[i].address < end; i++) {
		const struct gp_change *own = &sent->runs[i];
		uint64_t from = own->address > address ? own->address : address;
		uint64_t own_end = own->address + own->size;
		uint64_t to = own_end < end ? own_end : end;

		memcpy(bytes + (from - address),
		       (const uint8_t *)own->bytes + (from - own->address), (size_t)(to - from));
	}
}

void
gpc_sent_keep(const struct gpc_sent *list, uint64_t records, uint64_t address, uint8_t *bytes,
	      uint64_t size)
{
	for (const struct gpc_sent *sent = list; sent; sent = sent->next) {
		if (sent->record > records)
			keep(sent, address, bytes, size);
	}
}

void
gpc_sent_forget(struct gpc_sent **list, uint64_t records)
{
	struct gpc_sent *sent, *next;

	DL_FOREACH_SAFE(*list, sent, next)
	{
		if (sent->record > records)
			continue;
		DL_DELETE(*list, sent);
		free(sent->bytes);
		free(sent);
	}
}
