/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deferred queue of a session: records (encoded calls of the client) that must wait for a host
 * function of the client (host_function.h) or until a memory word meets a stream's condition
 * (mem_op.h). Below, both are called blockers. A gate (deferred_gate.h) is a blocker, too, that the
 * worker itself removes.
 *
 * Code of a client may take forever, and the GPU is shared: a stream that waits for it would block
 * streams of other sessions that share its hardware queue, the driver's loading of code, and this
 * session's own executor once the queue is full. Therefore no work that depends on a client is
 * enqueued on the GPU: the records after a blocker are stored here and carried out when the blocker
 * has ended.
 *
 * A record waits for earlier deferred records that refer to the same stream, event or image. In
 * addition, work on the legacy stream and work on blocking streams wait for each other. Calls that
 * allocate, map or free memory wait for each other. A call described as AFTER_ALL (codegen/api/)
 * waits for all earlier records, and all later records wait for one described as BEFORE_ALL. All
 * other records are carried out at once.
 *
 * An entry of the queue is a deferred record, the record of a host function or a wait, or a gate.
 * The executor calls gpd_deferred_add() for each record that it receives (executor/record.c). When
 * a blocker ends, its module calls gpd_deferred_remove(); the executor then calls
 * gpd_deferred_pop(), carries out the record and calls gpd_deferred_remove(), until no record is
 * ready.
 *
 * Ownership: session->stream_ops->queue. An entry of the queue is valid until
 * gpd_deferred_remove().
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
 * State of stream operations that are not carried out by the GPU: session->stream_ops. Initialized
 * to zeros.
 * Threads: executor only.
 */
struct gpd_stream_ops_session {
	struct gpd_deferred_queue *queue;    /* NULL before the first host function or gate */
	struct gpd_deferred_gate *gates;     /* deferred_gate.h; list (utlist); NULL: none */
	struct gpd_wait_values *wait_values; /* mem_op.h; NULL before the first wait */
};

/* Condition that opens a gate (deferred_gate.h). */
enum gpd_deferred_gate_kind {
	/* the queue of a stream has capacity */
	GPD_DEFERRED_GATE_DEPTH,
	/* all parts of a stream's copies to the client are enqueued */
	GPD_DEFERRED_GATE_COPIES,
	/* there is staging memory for a copy to the device */
	GPD_DEFERRED_GATE_STAGING,
	/* no other session has deferred a record of the event */
	GPD_DEFERRED_GATE_EVENT
};

/* A deferred record. Its entry owns it, with the copies of its fields and data. */
struct gpd_deferred_record {
	struct gp_header header;
	const void *fields;  /* encoded fields, without the header */
	size_t size;         /* bytes of fields */
	const uint8_t *bulk; /* data that followed the record; NULL: none */
	size_t bulk_size;    /* bytes of bulk */
};

/*
 * Decides whether a record that was just received is carried out now or deferred. The record and
 * its fields are from the client, unchecked. If it is deferred, its data is received from the
 * connection or the data lanes, which blocks. Returns:
 *   0        carry it out now; if *entry_p is not NULL, the record is a blocker that later records
 *            wait for, and it must be removed by gpd_deferred_remove() when it has ended or failed
 *   1        it was deferred (copied) or answered; the caller is done with it
 *   -EAGAIN  the queue has reached its limit until a gate opens; try again after polling the gates
 *            (gpd_deferred_gates_poll(), deferred_gate.h)
 *   -EPROTO  the session must end: a violation, out of memory or a failed connection; the reason
 *            was stored by gpd_session_violation()
 * *entry_p is NULL unless the result is 0. fields may be freed on return.
 */
int gpd_deferred_add(struct gpd_session *session, const struct gp_header *header,
		     const void *fields, size_t size, struct gpd_deferred_entry **entry_p);

/* Called by deferred_gate.c. Adds an entry for a gate of this kind, and creates the queue if
 * necessary. id: ID of the stream, or of the event for GPD_DEFERRED_GATE_EVENT. All records of
 * the stream wait for the gate, including those already deferred. Only later records wait for the
 * gate of an event. Returns the entry, which the caller removes by gpd_deferred_remove() when the
 * gate opens; NULL: out of memory. */
struct gpd_deferred_entry *gpd_deferred_add_gate(struct gpd_session *session,
						 enum gpd_deferred_gate_kind kind, uint32_t id);

/* Returns the next deferred record that may be carried out now, and sets *record_p to it, borrowed
 * until gpd_deferred_remove(). Takes the entry off the list of ready records only: later records
 * still wait for it until gpd_deferred_remove(). Returns NULL, with *record_p unchanged, if no
 * record is ready. */
struct gpd_deferred_entry *gpd_deferred_pop(struct gpd_session *session,
					    const struct gpd_deferred_record **record_p);

/* Returns an entry from gpd_deferred_pop() to its waiting state, because it must wait for a gate
 * that was added after gpd_deferred_pop(). It becomes ready when the gate opens. Its record was not
 * carried out. */
void gpd_deferred_postpone(struct gpd_deferred_entry *entry);

/* Removes and frees an entry: of a record that was carried out, a blocker that has ended or a gate
 * that has opened. Records that waited for it may become ready (gpd_executor_run_deferred(),
 * executor/record.h). May reply to a pending gpBacklogRoom call. */
void gpd_deferred_remove(struct gpd_session *session, struct gpd_deferred_entry *entry);

/* Returns whether the queue has no entry: no record is deferred, no host function or wait is
 * pending and there is no gate. */
bool gpd_deferred_is_empty(const struct gpd_session *session);

/* Frees the queue with all its entries at the session's end, without carrying them out. Does
 * nothing if it is NULL. */
void gpd_deferred_destroy(struct gpd_session *session);

#endif /* GPD_DEFERRED_QUEUE_H */
