/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/stream_managed.h"

#include "client/base/container.h"
#include "client/host/late_copy.h"
#include "client/pages/pages.h"
#include "client/session/session.h"
#include "client/stream/stream.h"

#include <stdlib.h>

/* The last work of each session that may have used managed memory. Guarded by the critical section
 * of gpc_pages_begin(), like everything here. */
static struct work {
	uint64_t issued;           /* gpc_session_issued() after the work; 0: done */
	struct gpc_stream *stream; /* stream of all of the work; NULL: several */
	uint64_t number; /* number of that stream, as its memory may be reused for another */
	struct gpc_context *context;
} works[GPC_SESSIONS_MAX];

static struct work *
session_get_work(const struct gpc_session *session)
{
	return &works[gpc_session_number(session)];
}

/* The stream's number is checked last: `done` of another stream would be meaningless. */
static bool
stream_is_done_with(struct gpc_stream *stream, uint64_t number, uint64_t issued)
{
	return issued <= atomic_load(&stream->done) &&
	       __atomic_load_n(&stream->number, __ATOMIC_ACQUIRE) == number;
}

/* Uses the results of the program's own waits, if these cover all of the work. */
static bool
work_is_done(const struct work *work)
{
	return work->issued == 0 ||
	       (work->context && work->issued <= atomic_load(&work->context->done)) ||
	       (work->stream && stream_is_done_with(work->stream, work->number, work->issued));
}

bool
gpc_managed_is_done(const struct gpc_session *session)
{
	return work_is_done(session_get_work(session));
}

void
gpc_managed_set_done(const struct gpc_session *session)
{
	session_get_work(session)->issued = 0;
}

static CUresult
flush_finish(const struct gpc_session *session, bool issued)
{
	CUresult result;

	if (issued)
		return CUDA_SUCCESS;
	gpc_pages_end();
	result = gpc_session_status((struct gpc_session *)session);
	return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult
gpc_managed_begin(const struct gpc_session *session)
{
	gpc_pages_begin();
	return flush_finish(session, gpc_pages_flush(session));
}

/* The range that a copy, a fill or a memory operation writes, and the range that it reads. */
struct parts {
	uint64_t dst, dst_size, src, src_size;
};

static bool
parts_flush(const struct parts *parts)
{
	bool issued =
		parts->src_size == 0 || gpc_pages_flush_range(parts->src, parts->src_size, false);

	return issued &&
	       (parts->dst_size == 0 || gpc_pages_flush_range(parts->dst, parts->dst_size, true));
}

/* Ranges that are sent when their stream reaches them, by a late copy (client/host/late_copy.h)
 * without data of its own. */
struct late_parts {
	struct gpc_late_copy late;
	struct parts parts;
};

/* Runs outside of the critical section, because a thread inside it may wait for the stream. */
static CUresult
late_parts_flush(struct gpc_late_copy *late)
{
	return parts_flush(&GPC_CONTAINER(late, struct late_parts, late)->parts)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

static void
late_parts_destroy(struct gpc_late_copy *late)
{
	free(GPC_CONTAINER(late, struct late_parts, late));
}

static CUresult
late_parts_post(struct gpc_stream *stream, const struct parts *parts)
{
	const struct gpc_scope *scope = &stream->context->scope;
	struct late_parts *late = calloc(1, sizeof(*late));

	if (!late)
		return CUDA_ERROR_OUT_OF_MEMORY;
	late->parts = *parts;
	late->late = (struct gpc_late_copy){ .session = scope->session,
					     .send = late_parts_flush,
					     .destroy = late_parts_destroy };
	return gpc_late_copy_post(scope, stream->handle.id, &late->late);
}

CUresult
gpc_managed_begin_copy(struct gpc_stream *stream, uint64_t dst, uint64_t dst_size, uint64_t src,
		       uint64_t src_size)
{
	const struct parts parts = { dst, dst_size, src, src_size };
	struct gpc_session *session = stream->context->scope.session;
	CUresult result;

	gpc_pages_begin();
	if (!gpc_session_is_host_gated(session))
		return flush_finish(session, parts_flush(&parts));
	result = late_parts_post(stream, &parts);
	if (result != CUDA_SUCCESS)
		gpc_pages_end();
	return result;
}

CUresult
gpc_managed_prefetch(const struct gpc_session *session, uint64_t base, uint64_t size)
{
	CUresult result;

	gpc_pages_begin();
	result = flush_finish(session, gpc_pages_flush_range(base, size, false));
	if (result == CUDA_SUCCESS)
		gpc_pages_end();
	return result;
}

void
gpc_managed_end(struct gpc_stream *stream)
{
	struct work *work;

	if (stream) {
		work = session_get_work(stream->context->scope.session);
		if (work_is_done(work)) {
			work->stream = stream;
			work->number = stream->number;
			work->context = stream->context;
		}
		if (work->stream != stream || work->number != stream->number)
			work->stream = NULL;
		if (work->context != stream->context)
			work->context = NULL;
		work->issued = gpc_session_issued(stream->context->scope.session);
	}
	gpc_pages_end();
}

bool
gpc_managed_contains(uint64_t base, uint64_t size)
{
	return gpc_pages_any() && gpc_pages_have(base, size);
}
