/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred queue of a session: records that must wait for a host function of the client
 * (host_function.h) or until a memory word meets a stream's condition (mem_op.h); both are called
 * functions below. Records wait for a gate (deferred_gate.h) in the same way.
 *
 * Code of a client may take forever, and the GPU is shared: a stream that waits for it would block
 * streams of other sessions that share its hardware queue, the driver's loading of code, and this
 * session's own executor once the queue is full. Therefore nothing that depends on a client is
 * given to the GPU: the records after a function wait here and are carried out when the function is
 * done.
 *
 * A record waits for earlier deferred records that name the same stream, event or image. In
 * addition, work on the legacy stream and on blocking streams waits for each other, and calls
 * described as AFTER_ALL wait for all. All other records are carried out at once.
 *
 * Ownership: session->deferred_queue.
 * Threads: executor only.
 */
#ifndef GPD_DEFERRED_QUEUE_H
#define GPD_DEFERRED_QUEUE_H

#include "protocol/frame.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_deferred_entry;
struct gpd_deferred_gate;
struct gpd_deferred_queue;
struct gpd_session;
struct gpd_wait_values;

/*
 * The part of a session that its operations of streams outside the GPU have: deferred records, the
 * gates that they wait for, and waits for values.
 * Threads: the executor.
 */
struct gpd_stream_ops_session {
	struct gpd_deferred_queue *queue;    /* NULL before the first host function or gate */
	struct gpd_deferred_gate *gates;     /* deferred_gate.h; utlist */
	struct gpd_wait_values *wait_values; /* mem_op.h; NULL before the first wait */
};

/* -ENOMEM. */
int gpd_stream_ops_session_create(struct gpd_session *session);
/* The records, gates and waits are gone, or their process is about to end. */
void gpd_stream_ops_session_destroy(struct gpd_session *session);

/* See deferred_gate.h. */
enum gpd_deferred_gate_kind {
	GPD_DEFERRED_GATE_DEPTH,
	GPD_DEFERRED_GATE_COPIES,
	GPD_DEFERRED_GATE_STAGING,
	GPD_DEFERRED_GATE_EVENT
};

/* A deferred record; its fields and bulk are valid until it is removed. */
struct gpd_deferred_record {
	struct gp_header header;
	const void *fields;
	size_t size;
	const uint8_t *bulk;
	size_t bulk_size;
};

/*
 * Decides about a new record. 0: carry it out now. 1: it was deferred or answered. -EAGAIN: the
 * queue is full until a gate opens. -EPROTO: the session must end. If the result is 0 and later
 * records depend on this one, *entry_p is set so that the caller can remove it when it is done;
 * otherwise it is NULL.
 */
int gpd_deferred_add(struct gpd_session *session, const struct gp_header *header,
		     const void *fields, size_t size, struct gpd_deferred_entry **entry_p);

/* Adds a gate of this kind. All records of the stream wait for it, including those already
 * deferred; for an event, only later ones. NULL: out of memory. */
struct gpd_deferred_entry *gpd_deferred_add_gate(struct gpd_session *session,
						 enum gpd_deferred_gate_kind kind, uint32_t name);

/* Returns the next deferred record that may be carried out now, or NULL. The entry stays in the
 * queue until gpd_deferred_remove(). */
struct gpd_deferred_entry *gpd_deferred_pop(struct gpd_session *session,
					    const struct gpd_deferred_record **record_p);

/* Puts back an entry from gpd_deferred_pop() that must wait for a gate which has been added
 * since. */
void gpd_deferred_postpone(struct gpd_deferred_entry *entry);

/* Removes a record that was carried out or whose function is done; records that waited for it may
 * be carried out. */
void gpd_deferred_remove(struct gpd_session *session, struct gpd_deferred_entry *entry);

/* Whether no record is deferred and no function is pending. */
bool gpd_deferred_is_empty(const struct gpd_session *session);

/* Frees the queue with all records at the session's end. */
void gpd_deferred_destroy(struct gpd_session *session);

#endif /* GPD_DEFERRED_QUEUE_H */
