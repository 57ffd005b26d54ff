/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that must wait for a host function of the client (host_function.h), or until a word of
 * memory is as a stream wants it (word.h); functions, below, are both.  Records wait for a gate
 * (backlog_gate.h) in the same way.
 *
 * What a client runs may take for ever, and the GPU is everybody's: a stream that waits on it would
 * hold up streams of other sessions that share its hardware queue, the driver's loading of code,
 * and this session's own executor once the queue is full.  So nothing is given to the GPU that
 * depends on a client: records behind a function wait here, and carried out when it is done.
 * A record waits for those before it that name the same stream, event or image; besides, what
 * works on the legacy stream and what the blocking ones do wait for one another, and calls that
 * the description has BEHIND_ALL wait for all.  Everything else goes past.  Executor only.
 */
#ifndef GPD_BACKLOG_H
#define GPD_BACKLOG_H

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
	struct gpd_deferred_gate *gates;     /* backlog_gate.h; utlist */
	struct gpd_wait_values *wait_values; /* word.h; NULL before the first wait */
};

/* -ENOMEM. */
int gpd_stream_ops_session_create(struct gpd_session *session);
/* The records, gates and waits are gone, or their process is about to end. */
void gpd_stream_ops_session_destroy(struct gpd_session *session);

/* backlog_gate.h */
enum gpd_deferred_gate_kind {
	GPD_DEFERRED_GATE_DEPTH,
	GPD_DEFERRED_GATE_COPIES,
	GPD_DEFERRED_GATE_STAGING,
	GPD_DEFERRED_GATE_EVENT
};

/* A record; its fields and bulk are valid until it is removed. */
struct gpd_deferred_record {
	struct gp_header header;
	const void *fields;
	size_t size;
	const uint8_t *bulk;
	size_t bulk_size;
};

/*
 * A record has come.  0: carry it out now.  1: nothing is to be done, it is in the backlog or
 * answered.  -EAGAIN: it does not fit until a gate is gone.  -EPROTO: the session must
 * end. Of what others will wait for, and is to be carried out, the record waits as well; *entry_p
 * names it, else it is NULL.
 */
int gpd_deferred_add(struct gpd_session *session, const struct gp_header *header,
		     const void *fields, size_t size, struct gpd_deferred_entry **entry_p);

/* A gate of this kind.  All records about the stream wait for it, those that are kept already
 * included; of an event later ones alone.  NULL: out of memory. */
struct gpd_deferred_entry *gpd_deferred_add_gate(struct gpd_session *session,
						 enum gpd_deferred_gate_kind kind, uint32_t name);

/* The next record of the backlog that may be carried out now, and what it says; NULL: there is
 * none. */
struct gpd_deferred_entry *gpd_deferred_pop(struct gpd_session *session,
					    const struct gpd_deferred_record **record_p);

/* It cannot be carried out before a gate that has been added since. */
void gpd_deferred_postpone(struct gpd_deferred_entry *entry);

/* It has been carried out, or its function is done: what waited for it may go on. */
void gpd_deferred_remove(struct gpd_session *session, struct gpd_deferred_entry *entry);

/* Whether none waits, and no function is under way. */
bool gpd_deferred_is_empty(const struct gpd_session *session);

/* At the session's end: forgets them all. */
void gpd_deferred_destroy(struct gpd_session *session);

#endif /* GPD_BACKLOG_H */
