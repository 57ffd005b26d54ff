/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulation of cuStreamWaitValue*(): streams that wait until a value in device memory, or in host
 * memory that kernels can access, meets a condition (gpStreamWait). Also cuStreamWriteValue*()
 * (gpStreamWrite), which the GPU carries out. Both check that the session may access the value
 * (gpd_memory_accessible(), memory/memory.h).
 *
 * The GPU itself does not wait: the record of the wait stays in the deferred queue
 * (deferred_queue.h), before the later records of its stream. When the stream's earlier work is
 * done, the session's executor polls the value, together with those of other waits, until the
 * condition is met. It polls by copies to the host, on one stream per device that all sessions
 * share. If the client's program may have written the value after data that has not arrived yet
 * (gpd_host_memory_needs_publish(), host/host_space.h), the worker then sends GP_NOTE_PUBLISH with
 * a number, and the wait ends when a gpHostPublish with this or a later number has arrived. The
 * client is notified of ended waits by GP_NOTE_WAITS. If a wait cannot be enqueued,
 * gpd_gpStreamWait() returns the error, and also sends GP_NOTE_WAITS.
 *
 * The hooks gpd_gpStreamWait(), gpd_gpStreamWrite() and gpd_gpHostPublish() are declared in
 * gpd_calls.h.
 *
 * Ownership: session->stream_ops->wait_values; freed by gpd_wait_values_destroy().
 * Threads: executor only.
 * Errors: none are returned; a sticky error of a poll is reported by gpd_session_poison(), after
 * other errors the poll is repeated.
 */
#ifndef GPD_MEM_OP_H
#define GPD_MEM_OP_H

#include <stdbool.h>

struct gpd_session;

/* Returns whether any wait is pending. The executor must then call gpd_wait_values_poll(). */
bool gpd_wait_values_are_pending(const struct gpd_session *session);

/* Continues polling, without blocking on the GPU; a wait must have been added before. May change
 * the current device. Ended waits are removed from the deferred queue and freed, and the client is
 * notified of their number. Returns that number; if it is not 0, deferred records may be ready
 * (gpd_executor_run_deferred()). */
unsigned int gpd_wait_values_poll(struct gpd_session *session);

/* Sleeps until the next poll is worthwhile, at most about 500 us; may spin instead. A wait must
 * have been added before. */
void gpd_wait_values_pause(struct gpd_session *session);

/* Frees all waits at the session's end. The responder must have ended. Blocks until the copies of
 * the last poll are done or the GPU is lost. Does nothing if there never was a wait. */
void gpd_wait_values_destroy(struct gpd_session *session);

#endif /* GPD_MEM_OP_H */
