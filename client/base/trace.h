/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event recorder for the timeline that GPUPOOL_TRACE enables: records calls, waits and transfers of
 * the program's threads, to show where a slow program spends its time (docs/tracing.md).
 *
 * Each thread has a buffer of 32768 events, which is allocated with its first event and which only
 * the thread fills, without a lock; the writer thread (client/trace/tracer.h) drains all buffers.
 * An event is lost if the buffer is full, which is counted, or if no buffer can be allocated, which
 * is not counted. Unless recording is enabled, the functions that record do nothing; callers test
 * gpc_trace_is_on() first.
 *
 * Ownership: a thread's buffer is freed by a flush after the thread has exited.
 * Threads: any thread may record. One thread at a time may call gpc_trace_flush().
 * Units: times are nanoseconds of gp_now_ns().
 */
#ifndef GPC_TRACE_H
#define GPC_TRACE_H

#include "client/base/trace_text.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Set if recording is enabled; read it with gpc_trace_is_on(). */
extern atomic_bool gpc_trace_on;

/* Returns whether recording is enabled. Costs one relaxed load. */
static inline bool
gpc_trace_is_on(void)
{
	return __builtin_expect(atomic_load_explicit(&gpc_trace_on, memory_order_relaxed), 0);
}

/* Enables recording if GPUPOOL_TRACE is set and not empty. Called once, while the library is
 * loaded. Returns whether recording is enabled: not if no thread-local key can be created. */
bool gpc_trace_init(void);
/* Returns the time of gpc_trace_init(), the origin of the timeline; 0 if tracing was not
 * enabled. */
uint64_t gpc_trace_start_ns(void);

/* Records a CUDA call that started at begun_ns and ends now. name: the exported function's name,
 * which is not copied; a static string. */
void gpc_trace_call(const char *name, uint64_t begun_ns, CUresult result);
/* Records a wait that started at begun_ns and ends now. cause: a call number, which is below
 * GPC_WAIT_CONNECT (65536), or a value of enum gpc_wait (stats.h), which begin at
 * GPC_WAIT_CONNECT. */
void gpc_trace_wait(unsigned int cause, uint64_t begun_ns);
/* Direction of a transfer over the connections to the daemons. */
enum gpc_trace_direction {
	GPC_TRACE_SENT,
	GPC_TRACE_RECEIVED
};
/* Records a point of a counter's curve: the total number of bytes transferred in this direction
 * since the process started. */
void gpc_trace_bytes(enum gpc_trace_direction direction, uint64_t total);

/* Appends all recorded events to text and removes them from the buffers. The caller has set
 * text->begun_ns and text->pid. Does not block. Returns the number of events lost since the process
 * started because a buffer was full. text->lost reports events that are missing because text was
 * out of memory. */
uint64_t gpc_trace_flush(struct gpc_trace_text *text);

/* Called in the child of a fork: drops the events that the parent has recorded, which the parent
 * itself writes. Recording stays enabled. */
void gpc_trace_after_fork(void);

#endif /* GPC_TRACE_H */
