/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates of the deferred queue (deferred_queue.h): conditions, other than host functions and waits
 * for memory values, that deferred records (encoded calls of the client) wait for. The executor
 * itself must not wait for them, because a later record may contain what the GPU is waiting for,
 * such as a value stored by the host.
 *
 *   gate of ...                         opens when ...
 *   a full stream                       its queue has capacity (stream/stream_depth.h)
 *   a stream with a copy to the client  all parts of the copy are enqueued (copy/copy.h)
 *   a stream with a copy to the device  there is staging memory for it (copy/staging.h)
 *   an event of several sessions        no other session has deferred a record of it
 *
 * The executor (executor/record.c) calls gpd_deferred_gates_before_record() for each record that it
 * receives, gpd_deferred_gates_before_deferred() for a deferred one that is ready, and
 * gpd_deferred_gates_after_record() after it has carried out a record that filled a stream or added
 * a copy to the client; then gpd_deferred_gates_poll() every GPD_DEFERRED_GATE_POLL_MS while there
 * are gates.
 *
 * Ownership: session->stream_ops->gates; this module frees them.
 * Threads: executor only.
 * Errors: 0 or -ENOMEM, unless noted. After -ENOMEM the session must end.
 */
#ifndef GPD_DEFERRED_GATE_H
#define GPD_DEFERRED_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

/* Interval in milliseconds at which the executor polls the gates. */
#define GPD_DEFERRED_GATE_POLL_MS 1

/* A record, as the functions below need it. */
struct gpd_gated_record {
	uint16_t call;      /* number of the call */
	const void *fields; /* the record's encoded fields, unchecked, borrowed */
	size_t size;        /* bytes of fields */
	uint64_t bulk_size; /* bytes of data after the record */
};

/* Adds the gates that a new record must wait for: one for each of its events that another session
 * has yet to record, and one for the stream of a copy to the device for which there is no staging
 * memory. Blocks for up to about 20 ms for staging memory first. Called before the record is
 * deferred or carried out. */
int gpd_deferred_gates_before_record(struct gpd_session *session,
				     const struct gpd_gated_record *record);

/* Checks staging memory for a deferred record that is about to be carried out. Returns 0: carry it
 * out. Returns 1: there is none, a gate exists now, and the caller must postpone the record
 * (gpd_deferred_postpone()). Returns -ENOMEM: out of memory. */
int gpd_deferred_gates_before_deferred(struct gpd_session *session,
				       const struct gpd_gated_record *record);

/* Adds a gate for each stream that is full now, and for each stream with a copy to the client of
 * which parts are not enqueued yet. Called after a record was carried out and before it is removed
 * from the deferred queue. */
int gpd_deferred_gates_after_record(struct gpd_session *session);

/* Polls the gates without waiting, after continuing copies with parts left (gpd_copy_continue(),
 * copy/copy.h). Opened gates are freed and removed from the deferred queue. Returns whether a gate
 * has opened, so that deferred records may be ready. */
bool gpd_deferred_gates_poll(struct gpd_session *session);

/* Frees all gates at the session's end, before the deferred queue is destroyed
 * (gpd_host_functions_destroy()), which frees their entries. */
void gpd_deferred_gates_destroy(struct gpd_session *session);

#endif /* GPD_DEFERRED_GATE_H */
