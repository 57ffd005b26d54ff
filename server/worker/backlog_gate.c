/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/backlog_gate.h"

#include "base/clock.h"
#include "gpd_calls.h"
#include "server/worker/backlog.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/staging.h"
#include "server/worker/session/event.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

/* How long the executor waits for staging memory. */
#define STAGING_WAIT_NS UINT64_C(20000000)

struct gpd_backlog_gate {
	struct gpd_backlog_gate *prev, *next;
	enum gpd_backlog_gate_kind kind;
	struct gpd_stream *stream; /* of an event's: NULL */
	uint32_t event;
	struct gpd_backlog_entry *entry;
};

static bool
has_gate(const struct gpd_session *session, enum gpd_backlog_gate_kind kind,
	 const struct gpd_stream *stream, uint32_t event)
{
	const struct gpd_backlog_gate *gate;

	DL_FOREACH(session->gates, gate)
	{
		if (gate->kind == kind && gate->stream == stream && gate->event == event)
			return true;
	}
	return false;
}

/* Unless there is one. */
static int
add(struct gpd_session *session, enum gpd_backlog_gate_kind kind, struct gpd_stream *stream,
    uint32_t event)
{
	struct gpd_backlog_gate *gate;

	if (has_gate(session, kind, stream, event))
		return 0;
	gate = calloc(1, sizeof(*gate));
	if (!gate)
		return -ENOMEM;
	gate->kind = kind;
	gate->stream = stream;
	gate->event = event;
	gate->entry = gpd_backlog_add_gate(session, kind, stream ? stream->handle.id : event);
	if (!gate->entry) {
		free(gate);
		return -ENOMEM;
	}
	DL_APPEND(session->gates, gate);
	return 0;
}

/* What a copy to the device takes of the staging memory; 0: it is none, or a late copy, whose
 * stream has got there. */
static uint64_t
get_staged_size(const struct gpd_backlog_gated *record)
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

/* The stream of a copy to the device that has no staging memory; NULL: it has, or is none. */
static struct gpd_stream *
get_unstaged(struct gpd_session *session, const struct gpd_backlog_gated *record)
{
	uint64_t size = get_staged_size(record);
	struct gpd_names names;

	if (!size || gpd_staging_has_room(session, size) ||
	    !gpd_call_names(record->call, record->fields, record->size, &names) || names.passes_all)
		return NULL;
	for (unsigned int i = 0; i < names.count; i++) {
		if (names.names[i].kind == GPD_KIND_STREAM)
			return gpd_stream_get(session, names.names[i].id);
	}
	return NULL;
}

/* The GPU gives it back soon, unless it waits for something that comes later. */
static int
close_unstaged(struct gpd_session *session, const struct gpd_backlog_gated *record)
{
	struct gpd_stream *stream = get_unstaged(session, record);
	uint64_t end;

	if (!stream || has_gate(session, GPD_GATE_STAGING, stream, 0))
		return 0;
	end = gp_now_ns() + STAGING_WAIT_NS;
	while (gp_now_ns() < end && !atomic_load(&session->closing)) {
		gpd_staging_wait(session);
		if (!get_unstaged(session, record))
			return 0;
	}
	return add(session, GPD_GATE_STAGING, stream, 0);
}

static int
close_held(struct gpd_session *session, const struct gpd_backlog_gated *record)
{
	struct gpd_names names;
	int r = 0;

	if (!gpd_call_names(record->call, record->fields, record->size, &names))
		return 0;
	for (unsigned int i = 0; i < names.count && r == 0; i++) {
		if (names.names[i].kind == GPD_KIND_EVENT &&
		    gpd_event_is_held(session, names.names[i].id))
			r = add(session, GPD_GATE_EVENT, NULL, names.names[i].id);
	}
	return r;
}

int
gpd_backlog_gates_before(struct gpd_session *session, const struct gpd_backlog_gated *record)
{
	int r = session->shares_events ? close_held(session, record) : 0;

	return r ? r : close_unstaged(session, record);
}

int
gpd_backlog_gates_again(struct gpd_session *session, const struct gpd_backlog_gated *record)
{
	struct gpd_stream *stream = get_unstaged(session, record);

	if (!stream)
		return 0;
	return add(session, GPD_GATE_STAGING, stream, 0) ? -ENOMEM : 1;
}

static int
close_full(struct gpd_session *session)
{
	int r = 0;

	session->depths.filled = false;
	for (struct gpd_stream *s = session->streams; s && r == 0; s = s->next) {
		/* The client gives no work to a stream without a name. */
		if (!s->handle.id)
			s->depth.full = false;
		if (s->depth.full)
			r = add(session, GPD_GATE_DEPTH, s, 0);
	}
	return r;
}

static int
close_copied(struct gpd_session *session, struct gpd_stream *stream)
{
	return stream->handle.id ? add(session, GPD_GATE_COPIES, stream, 0) : 0;
}

int
gpd_backlog_gates_after(struct gpd_session *session)
{
	int r = session->copies_added ? gpd_copy_each_left(session, close_copied) : 0;

	session->copies_added = false;
	return r == 0 && session->depths.filled ? close_full(session) : r;
}

static bool
is_open(struct gpd_session *session, const struct gpd_backlog_gate *gate)
{
	switch (gate->kind) {
	case GPD_GATE_DEPTH:
		return gpd_depth_look(session, gate->stream);
	case GPD_GATE_COPIES:
		return !gpd_copy_is_left(session, gate->stream);
	case GPD_GATE_STAGING:
		return gpd_staging_has_room(session, 0);
	default:
		return !gpd_event_is_held(session, gate->event);
	}
}

bool
gpd_backlog_gates_open(struct gpd_session *session)
{
	struct gpd_backlog_gate *gate, *next;
	bool opened = false;

	if (session->copies_out)
		(void)gpd_copy_continue(session);
	DL_FOREACH_SAFE(session->gates, gate, next)
	{
		if (!is_open(session, gate))
			continue;
		DL_DELETE(session->gates, gate);
		gpd_backlog_remove(session, gate->entry);
		free(gate);
		opened = true;
	}
	return opened;
}

void
gpd_backlog_gates_forget(struct gpd_session *session)
{
	struct gpd_backlog_gate *gate;

	while ((gate = session->gates)) {
		DL_DELETE(session->gates, gate);
		free(gate);
	}
}
