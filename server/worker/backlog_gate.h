/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates: what records wait for in the backlog besides host functions and words, so that the
 * executor waits for none of it: what the host stores comes in a later record and may be what the
 * GPU waits for.
 *   a full stream: room in its queue (session/depth.h)
 *   a stream with a copy to the client: staging memory for the parts that are left (copy/copy.h)
 *   a stream with a copy to the device: staging memory for it (copy/staging.h)
 *   an event of several sessions: a record of it that another session's backlog has
 *
 * Ownership: the session's list.  Threads: the executor alone.
 */
#ifndef GPD_BACKLOG_GATE_H
#define GPD_BACKLOG_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;

/* How often the executor looks whether a gate is open. */
#define GPD_DEFERRED_GATE_POLL_MS 1

/* A record, as the functions below look at it. */
struct gpd_gated_record {
	uint16_t call;
	const void *fields;
	size_t size;
	uint64_t bulk_size;
};

/* Before a record has its place: a gate for each event that it names and another session holds, and
 * for the stream of a copy that has no staging memory after a while.  -ENOMEM. */
int gpd_deferred_gates_before_record(struct gpd_session *session,
				     const struct gpd_gated_record *record);

/* Before a record that was kept is carried out: 1: there is no staging memory for it, and it waits
 * for a gate.  -ENOMEM. */
int gpd_deferred_gates_before_deferred(struct gpd_session *session,
				       const struct gpd_gated_record *record);

/* After a record was carried out, and before it leaves the backlog: for streams that are full now,
 * and those of copies that have parts left.  -ENOMEM. */
int gpd_deferred_gates_after_record(struct gpd_session *session);

/* Whether a gate was opened: records may be carried out. */
bool gpd_deferred_gates_poll(struct gpd_session *session);

/* At the session's end. */
void gpd_deferred_gates_destroy(struct gpd_session *session);

#endif /* GPD_BACKLOG_GATE_H */
