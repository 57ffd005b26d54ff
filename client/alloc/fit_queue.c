/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/fit_queue.h"

/* The word of a run that waits: this, and the next place. */
#define WAITS 0x80000000u
#define QUEUE_END 0x7fffffffu

void
gpc_fit_queue_init(struct gpc_fit_queue *queue)
{
	queue->head = QUEUE_END;
	queue->tail = QUEUE_END;
	queue->units = 0;
}

void
gpc_fit_queue_push(struct gpc_fit_queue *queue, struct gpc_fit *fit, uint32_t place, uint64_t tag)
{
	*gpc_fit_word(fit, place) = WAITS | QUEUE_END;
	*gpc_fit_value(fit, place) = tag;
	if (queue->tail == QUEUE_END)
		queue->head = place;
	else
		*gpc_fit_word(fit, queue->tail) = WAITS | place;
	queue->tail = place;
	queue->units += gpc_fit_units(fit, place);
}

uint32_t
gpc_fit_queue_pop(struct gpc_fit_queue *queue, struct gpc_fit *fit, uint64_t done)
{
	uint32_t place = queue->head;

	if (place == QUEUE_END || *gpc_fit_value(fit, place) > done)
		return GPC_FIT_NONE;
	queue->head = *gpc_fit_word(fit, place) & ~WAITS;
	if (queue->head == QUEUE_END)
		queue->tail = QUEUE_END;
	queue->units -= gpc_fit_units(fit, place);
	return place;
}

bool
gpc_fit_waits(const struct gpc_fit *fit, uint32_t place)
{
	return (*gpc_fit_word(fit, place) & WAITS) != 0;
}
