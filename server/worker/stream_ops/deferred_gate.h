/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates: conditions other than host functions and memory words for which records wait in the
 * deferred queue. The executor itself must not wait for them, because a later record may contain
 * what the GPU is waiting for, such as a value stored by the host.
 *
 *   gate of ...                         opens when ...
 *   a full stream                       its queue has room (session/depth.h)
 *   a stream with a copy to the client  all parts of the copy are enqueued (copy/copy.h)
 *   a stream with a copy to the device  there is staging memory for it (copy/staging.h)
 *   an event of several sessions        no other session has deferred a record of it
 *
 * Ownership: the session's list.
 * Threads: executor only.
 * Errors: 0 or -ENOMEM, unless noted.
 */
#ifndef GPD_DEFERRED_GATE_H
#define GPD_DEFERRED_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

/* How often the executor polls the gates. */
#define GPD_DEFERRED_GATE_POLL_MS 1

/* The members of a record that the functions below need. */
struct gpd_gated_record {
	uint16_t call;
	const void *fields;
	size_t size;
	uint64_t bulk_size;
};

/* To be called before a new record is deferred or carried out: adds a gate for each event that it
 * names and whose record another session has deferred, and for the stream of a copy for which
 * staging memory is not available after a short wait. */
int gpd_deferred_gates_before_record(struct gpd_session *session,
				     const struct gpd_gated_record *record);

/* To be called before a deferred record is carried out. 1: there is no staging memory for it, and
 * it must wait for a gate. */
int gpd_deferred_gates_before_deferred(struct gpd_session *session,
				       const struct gpd_gated_record *record);

/* To be called after a record was carried out and before it is removed from the deferred queue:
 * adds gates for streams that are full now and for streams of copies with parts left. */
int gpd_deferred_gates_after_record(struct gpd_session *session);

/* Polls the gates. Returns whether one has opened, so that deferred records may be carried out. */
bool gpd_deferred_gates_poll(struct gpd_session *session);

/* Frees all gates at the session's end. */
void gpd_deferred_gates_destroy(struct gpd_session *session);

#endif /* GPD_DEFERRED_GATE_H */
