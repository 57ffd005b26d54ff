/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event recorder for the timeline that GPUPOOL_TRACE enables: records calls, waits and transfers of
 * the program's threads, to show where a slow program spends its time (docs/tracing.md).
 *
 * Each thread has a buffer that only it fills, without a lock; entry/tracer.h drains all of them.
 * Events that do not fit in a full buffer are counted as lost. Without GPUPOOL_TRACE nothing is
 * recorded, and the only cost is reading gpc_trace_on.
 *
 * Threads: any thread may record. gpc_trace_flush() must not run concurrently with itself.
 * Units: times are nanoseconds of gp_now_ns().
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

/* Enables tracing if GPUPOOL_TRACE is set, and returns whether it is. Called once, while the
 * library is loaded. */
bool gpc_trace_init(void);
/* Returns the time of gpc_trace_init(), the origin of the timeline. */
uint64_t gpc_trace_start_ns(void);

/* Records a CUDA call that ends now. name: the exported function's name, which must be a static
 * string. */
void gpc_trace_call(const char *name, uint64_t begun_ns, CUresult result);
/* Records a wait that ends now. cause: as in stats.h. */
void gpc_trace_wait(unsigned int cause, uint64_t begun_ns);
/* Records the total number of bytes transferred over the link since the program started. */
enum gpc_trace_direction {
	GPC_TRACE_SENT,
	GPC_TRACE_RECEIVED
};
void gpc_trace_bytes(enum gpc_trace_direction direction, uint64_t total);

/* Writes all recorded events to text and removes them. Returns the number of events lost so far. */
uint64_t gpc_trace_flush(struct gpc_trace_text *text);

/* Drops the parent's events in the child of a fork; the parent writes them. */
void gpc_trace_after_fork(void);

#endif /* GPC_TRACE_H */
