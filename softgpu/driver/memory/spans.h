/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses, sorted, not overlapping. No locking: the caller has the space's lock. */
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
	GS_SPAN_VARIABLE, /* of a module */
	GS_SPAN_ARRAY,    /* reserved, and mapped for nobody but its array */
	GS_SPAN_HOST,     /* cuMemHostAlloc */
	GS_SPAN_REGISTERED,
};

struct gs_span {
	uint64_t base;
	size_t size;
	enum gs_span_use use;
	int access;                        /* of any device, or the host */
	int device;                        /* whose memory it is charged to, of GS_SPAN_PLAIN */
	struct gs_allocation *allocation;  /* of GS_SPAN_MAPPED, as is */
	uint8_t access_of[GS_DEVICES_MAX]; /* each device's */
	uint8_t access_of_host;
};

struct gs_spans {
	struct gs_span *items;
	size_t count;
	size_t room;
};

/* The index of the first span that ends beyond the address; count when there is none. */
size_t gs_spans_index(const struct gs_spans *spans, uint64_t address);
/* The span that contains the address, or NULL. */
struct gs_span *gs_spans_find(const struct gs_spans *spans, uint64_t address);
/* The span that begins there, or NULL. */
struct gs_span *gs_spans_at(const struct gs_spans *spans, uint64_t base);
bool gs_spans_overlap(const struct gs_spans *spans, uint64_t base, size_t size);
/* false: no memory. The caller has made sure that nothing overlaps. */
bool gs_spans_insert(struct gs_spans *spans, const struct gs_span *span);
void gs_spans_remove(struct gs_spans *spans, struct gs_span *span);

#endif /* GS_SPANS_H */
