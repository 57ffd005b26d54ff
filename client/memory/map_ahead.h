/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings that are asked for before the program wants them: who has mapped several of one size,
 * one after the other, will map more of it.  They come to what is kept (alloc/kept.h), where the
 * next ones are found, and from where the daemon has them back.  Nobody waits for them, and nobody
 * else is asked to give memory back for them.
 *
 * Part of the memory of a session, which owns it.  Any thread may call.
 */
#ifndef GPC_MAP_AHEAD_H
#define GPC_MAP_AHEAD_H

#include "client/alloc/heap.h"
#include "client/alloc/kept.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_ahead;
struct gpc_context;

struct gpc_map_ahead {
	struct gpc_heap *heap;
	struct gpc_kept *kept;
	const atomic_bool *keeps;  /* whether the daemon knows that something is kept */
	atomic_uint_fast64_t size; /* of the last mapping that was waited for */
	atomic_uint row;           /* how many were asked for ahead the last time */
	atomic_uint pending;
	_Atomic(struct gpc_ahead *) strays; /* that came when nothing more was to be kept */
};

void gpc_map_ahead_init(struct gpc_map_ahead *ahead, struct gpc_heap *heap, struct gpc_kept *kept,
			const atomic_bool *keeps);
/* One of this size was waited for: how many are to be had ahead now; 0: none. */
unsigned int gpc_map_ahead_plan(struct gpc_map_ahead *ahead, uint64_t size);
/* Asks for so many, once the daemon knows that something is kept. */
void gpc_map_ahead_start(struct gpc_map_ahead *ahead, struct gpc_context *context, uint64_t size,
			 unsigned int count);
/* Waits for what is on its way, and not for any work. */
void gpc_map_ahead_await(struct gpc_map_ahead *ahead, struct gpc_context *context);
/* One to be unmapped; false: there is none. */
bool gpc_map_ahead_take_stray(struct gpc_map_ahead *ahead, struct gpc_kept_mapping *mapping);

#endif /* GPC_MAP_AHEAD_H */
