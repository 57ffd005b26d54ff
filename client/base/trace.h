/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline that GPUPOOL_TRACE asks for, as far as the program's own threads make it: with it a
 * user sees which call, wait or transfer a slow program spends its time in (docs/tracing.md).
 *
 * Each thread has a buffer of its own that only it fills, without a lock; entry/tracer.h empties
 * all of them.  What a full buffer cannot take is counted.  Any thread may record; nothing is
 * recorded, and nothing costs more than a look at gpc_trace_on, without GPUPOOL_TRACE.
 */
#ifndef GPC_TRACE_H
#define GPC_TRACE_H

#include "client/base/trace_text.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern atomic_bool gpc_trace_on;

static inline bool
gpc_trace_is_on(void)
{
	return __builtin_expect(atomic_load_explicit(&gpc_trace_on, memory_order_relaxed), 0);
}

/* While the library is loaded, before there are calls: whether GPUPOOL_TRACE is set. */
bool gpc_trace_init(void);
/* When that was: what the timeline's times are told from. */
uint64_t gpc_trace_start_ns(void);

/* name: of the exported function; it stays where it is. */
void gpc_trace_call(const char *name, uint64_t begun_ns, CUresult result);
/* cause: as in stats.h.  Around a wait, when it has ended. */
void gpc_trace_wait(unsigned int cause, uint64_t begun_ns);
/* So many bytes have gone over the link since the program began. */
enum gpc_trace_direction {
	GPC_TRACE_SENT,
	GPC_TRACE_RECEIVED
};
void gpc_trace_bytes(enum gpc_trace_direction direction, uint64_t total);

/* Writes and forgets what the threads have recorded; not two at a time.  Returns how much was lost
 * so far. */
uint64_t gpc_trace_flush(struct gpc_trace_text *text);

/* In the child of a fork: what the parent's threads have recorded is the parent's. */
void gpc_trace_after_fork(void);

#endif /* GPC_TRACE_H */
