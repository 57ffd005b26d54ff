/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/deferred_free.h"

/* 32-bit user word of a queued run: this bit, and the place of the next run. */
#define DEFERRED 0x80000000u
#define QUEUE_END 0x7fffffffu

void
gpc_deferred_free_init(struct gpc_deferred_free *queue)
{
	queue->head = QUEUE_END;
	queue->tail = QUEUE_END;
	queue->units = 0;
}

void
gpc_deferred_free_push(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf, uint32_t place,
		       uint64_t tag)
{
	*gpc_tlsf_get_user32(tlsf, place) = DEFERRED | QUEUE_END;
	*gpc_tlsf_get_user64(tlsf, place) = tag;
	if (queue->tail == QUEUE_END)
		queue->head = place;
	else
		*gpc_tlsf_get_user32(tlsf, queue->tail) = DEFERRED | place;
	queue->tail = place;
	queue->units += gpc_tlsf_get_units(tlsf, place);
}

uint32_t
gpc_deferred_free_pop(struct gpc_deferred_free *queue, struct gpc_tlsf *tlsf, uint64_t done)
{
	uint32_t place = queue->head;

	if (place == QUEUE_END || *gpc_tlsf_get_user64(tlsf, place) > done)
		return GPC_TLSF_NONE;
	queue->head = *gpc_tlsf_get_user32(tlsf, place) & ~DEFERRED;
	if (queue->head == QUEUE_END)
		queue->tail = QUEUE_END;
	queue->units -= gpc_tlsf_get_units(tlsf, place);
	return place;
}

bool
gpc_deferred_free_contains(const struct gpc_tlsf *tlsf, uint32_t place)
{
	return (*gpc_tlsf_get_user32(tlsf, place) & DEFERRED) != 0;
}
