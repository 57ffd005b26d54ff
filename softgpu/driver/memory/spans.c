/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/spans.h"

#include <stdlib.h>
#include <string.h>

size_t
gs_spans_index(const struct gs_spans *spans, uint64_t address)
{
	size_t low = 0, high = spans->count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gs_span *span = &spans->items[middle];

		if (span->base + span->size > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct gs_span *
gs_spans_find(const struct gs_spans *spans, uint64_t address)
{
	size_t i = gs_spans_index(spans, address);

	if (i == spans->count || spans->items[i].base > address)
		return NULL;
	return &spans->items[i];
}

struct gs_span *
gs_spans_at(const struct gs_spans *spans, uint64_t base)
{
	struct gs_span *span = gs_spans_find(spans, base);

	return span && span->base == base ? span : NULL;
}

bool
gs_spans_overlap(const struct gs_spans *spans, uint64_t base, size_t size)
{
	size_t i = gs_spans_index(spans, base);

	return i < spans->count && spans->items[i].base < base + size;
}

bool
gs_spans_insert(struct gs_spans *spans, const struct gs_span *span)
{
	size_t i;

	if (spans->count == spans->room) {
		size_t room = spans->room ? spans->room * 2 : 16;
		struct gs_span *larger = realloc(spans->items, room * sizeof(*larger));

		if (!larger)
			return false;
		spans->items = larger;
		spans->room = room;
	}
	i = gs_spans_index(spans, span->base);
	memmove(&spans->items[i + 1], &spans->items[i], (spans->count - i) * sizeof(*span));
	spans->items[i] = *span;
	spans->count++;
	return true;
}

void
gs_spans_remove(struct gs_spans *spans, struct gs_span *span)
{
	size_t i = (size_t)(span - spans->items);

	memmove(span, span + 1, (spans->count - i - 1) * sizeof(*span));
	spans->count--;
}
