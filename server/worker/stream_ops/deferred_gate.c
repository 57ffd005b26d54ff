/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream_ops/deferred_gate.h"

#include "base/clock.h"
#include "gpd_calls.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/staging.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

/* How long the executor waits for staging memory. */
#define STAGING_WAIT_NS UINT64_C(20000000)

struct gpd_deferred_gate {
	struct gpd_deferred_gate *prev, *next;
	enum gpd_deferred_gate_kind kind;
	struct gpd_stream *stream; /* NULL for a gate of an event */
	uint32_t event;
	struct gpd_deferred_entry *entry;
};

static bool
gate_exists(const struct gpd_session *session, enum gpd_deferred_gate_kind kind,
	    const struct gpd_stream *stream, uint32_t event)
{
	const struct gpd_deferred_gate *gate;

	DL_FOREACH(session->stream_ops->gates, gate)
	{
		if (gate->kind == kind && gate->stream == stream && gate->event == event)
			return true;
	}
	return false;
}

/* Does nothing if the gate exists. */
static int
gate_add(struct gpd_session *session, enum gpd_deferred_gate_kind kind, struct gpd_stream *stream,
	 uint32_t event)
{
	struct gpd_deferred_gate *gate;

	if (gate_exists(session, kind, stream, event))
		return 0;
	gate = calloc(1, sizeof(*gate));
	if (!gate)
		return -ENOMEM;
	gate->kind = kind;
	gate->stream = stream;
	gate->event = event;
	gate->entry = gpd_deferred_add_gate(session, kind, stream ? stream->handle.id : event);
	if (!gate->entry) {
		free(gate);
		return -ENOMEM;
	}
	DL_APPEND(session->stream_ops->gates, gate);
	return 0;
}

/* Bytes of staging memory for a copy to the device; 0: not such a copy, or a late copy, whose
 * stream has already reached it. */
static uint64_t
get_staged_size(const struct gpd_gated_record *record)
{
	struct gp_args_gpCopyInLanes lanes;
	struct gp_dec dec;

	switch (record->call) {
	case GP_CALL_gpCopyIn:
	case GP_CALL_gpArrayCopyIn:
		return record->bulk_size;
	case GP_CALL_gpCopyInShort:
		return record->size;
	case GP_CALL_gpCopyInLanes:
		gp_dec_init(&dec, record->fields, record->size);
		gp_args_gpCopyInLanes_decode(&dec, &lanes);
		return lanes.size;
	default:
		return 0;
	}
}

/* Returns the stream of a copy to the device for which there is no staging memory now, or NULL. */
static struct gpd_stream *
record_get_unstaged_stream(struct gpd_session *session, const struct gpd_gated_record *record)
{
	uint64_t size = get_staged_size(record);
	struct gpd_call_handles handles;

	if (!size || gpd_staging_has_room(session, size) ||
	    !gpd_call_get_handles(record->call, record->fields, record->size, &handles) ||
	    handles.is_unordered)
		return NULL;
	for (unsigned int i = 0; i < handles.count; i++) {
		if (handles.handles[i].kind == GPD_KIND_STREAM)
			return gpd_stream_get(session, handles.handles[i].id);
	}
	return NULL;
}

/* Waits briefly first: the GPU releases memory soon, unless it waits for a later record. */
static int
gate_close_unstaged(struct gpd_session *session, const struct gpd_gated_record *record)
{
	struct gpd_stream *stream = record_get_unstaged_stream(session, record);
	uint64_t end;

	if (!stream || gate_exists(session, GPD_DEFERRED_GATE_STAGING, stream, 0))
		return 0;
	end = gp_now_ns() + STAGING_WAIT_NS;
	while (gp_now_ns() < end && !atomic_load(&session->closing)) {
		gpd_staging_wait(session);
		if (!record_get_unstaged_stream(session, record))
			return 0;
	}
	return gate_add(session, GPD_DEFERRED_GATE_STAGING, stream, 0);
}

static int
gate_close_pending_events(struct gpd_session *session, const struct gpd_gated_record *record)
{
	struct gpd_call_handles handles;
	int r = 0;

	if (!gpd_call_get_handles(record->call, record->fields, record->size, &handles))
		return 0;
	for (unsigned int i = 0; i < handles.count && r == 0; i++) {
		if (handles.handles[i].kind == GPD_KIND_EVENT &&
		    gpd_event_has_deferred_record(session, handles.handles[i].id))
			r = gate_add(session, GPD_DEFERRED_GATE_EVENT, NULL, handles.handles[i].id);
	}
	return r;
}

int
gpd_deferred_gates_before_record(struct gpd_session *session, const struct gpd_gated_record *record)
{
	int r = session->streams->has_ipc_events ? gate_close_pending_events(session, record) : 0;

	return r ? r : gate_close_unstaged(session, record);
}

int
gpd_deferred_gates_before_deferred(struct gpd_session *session,
				   const struct gpd_gated_record *record)
{
	struct gpd_stream *stream = record_get_unstaged_stream(session, record);

	if (!stream)
		return 0;
	return gate_add(session, GPD_DEFERRED_GATE_STAGING, stream, 0) ? -ENOMEM : 1;
}

static int
gate_close_full_streams(struct gpd_session *session)
{
	int r = 0;

	session->streams->depths.filled = false;
	for (struct gpd_stream *s = session->streams->list; s && r == 0; s = s->next) {
		/* The client gives no work to a stream without an ID. */
		if (!s->handle.id)
			s->depth.full = false;
		if (s->depth.full)
			r = gate_add(session, GPD_DEFERRED_GATE_DEPTH, s, 0);
	}
	return r;
}

static int
gate_close_copies(struct gpd_session *session, struct gpd_stream *stream)
{
	return stream->handle.id ? gate_add(session, GPD_DEFERRED_GATE_COPIES, stream, 0) : 0;
}

int
gpd_deferred_gates_after_record(struct gpd_session *session)
{
	int r = session->copies->added ? gpd_copy_for_each_unfinished(session, gate_close_copies)
				       : 0;

	session->copies->added = false;
	return r == 0 && session->streams->depths.filled ? gate_close_full_streams(session) : r;
}

static bool
gate_is_open(struct gpd_session *session, const struct gpd_deferred_gate *gate)
{
	switch (gate->kind) {
	case GPD_DEFERRED_GATE_DEPTH:
		return gpd_depth_poll(session, gate->stream);
	case GPD_DEFERRED_GATE_COPIES:
		return !gpd_copy_is_unfinished(session, gate->stream);
	case GPD_DEFERRED_GATE_STAGING:
		return gpd_staging_has_room(session, 0);
	default:
		return !gpd_event_has_deferred_record(session, gate->event);
	}
}

bool
gpd_deferred_gates_poll(struct gpd_session *session)
{
	struct gpd_deferred_gate *gate, *next;
	bool opened = false;

	if (session->copies->out)
		(void)gpd_copy_continue(session);
	DL_FOREACH_SAFE(session->stream_ops->gates, gate, next)
	{
		if (!gate_is_open(session, gate))
			continue;
		DL_DELETE(session->stream_ops->gates, gate);
		gpd_deferred_remove(session, gate->entry);
		free(gate);
		opened = true;
	}
	return opened;
}

void
gpd_deferred_gates_destroy(struct gpd_session *session)
{
	struct gpd_deferred_gate *gate;

	while ((gate = session->stream_ops->gates)) {
		DL_DELETE(session->stream_ops->gates, gate);
		free(gate);
	}
}
