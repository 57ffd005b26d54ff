/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted list of address ranges (spans) without overlaps.
 *
 * Ownership: the list has a copy of each span. Returned pointers are valid until the list is
 * changed.
 * Threads: the caller holds the address space's lock (gs_space.lock).
 * Units: sizes are in bytes.
 */
#ifndef GS_SPANS_H
#define GS_SPANS_H

#include "softgpu/driver/driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gs_allocation;

enum gs_span_use {
	GS_SPAN_RESERVED, /* cuMemAddressReserve */
	GS_SPAN_MAPPED,   /* cuMemMap */
	GS_SPAN_PLAIN,    /* cuMemAlloc: reservation and mapping in one */
	GS_SPAN_VARIABLE, /* variable of a module */
	GS_SPAN_ARRAY, /* reserved for an array; mapped, but only its array may be used to access it
			*/
	GS_SPAN_HOST,  /* cuMemHostAlloc */
	GS_SPAN_REGISTERED,
};

struct gs_span {
	uint64_t base;
	size_t size;
	enum gs_span_use use;
	int access; /* enum gs_access: access of any device or the host, combined */
	int device; /* GS_SPAN_PLAIN: device that the memory is charged to */
	struct gs_allocation *allocation;  /* GS_SPAN_MAPPED: the mapped memory, with a reference;
					      otherwise NULL */
	uint8_t access_of[GS_DEVICES_MAX]; /* enum gs_access for each device */
	uint8_t access_of_host;
};

struct gs_spans {
	struct gs_span *items;
	size_t count;
	size_t room;
};

/* Returns the index of the first span that ends after the address, or `count` if there is none. */
size_t gs_spans_index(const struct gs_spans *spans, uint64_t address);
/* Returns the span that contains the address, or NULL. */
struct gs_span *gs_spans_find(const struct gs_spans *spans, uint64_t address);
/* Returns the span that begins at the address, or NULL. */
struct gs_span *gs_spans_at(const struct gs_spans *spans, uint64_t base);
/* Returns whether a span overlaps the range. */
bool gs_spans_overlap(const struct gs_spans *spans, uint64_t base, size_t size);
/* Inserts a copy of a span, which must not overlap another. Returns true, or false if out of
 * memory; the list is then unchanged. */
bool gs_spans_insert(struct gs_spans *spans, const struct gs_span *span);
/* Removes a span of the list, as returned by gs_spans_find() or gs_spans_at(). */
void gs_spans_remove(struct gs_spans *spans, struct gs_span *span);

#endif /* GS_SPANS_H */
