/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/managed.h"

#include "client/pages/pages.h"
#include "client/stream/stream.h"
#include "client/wire/session.h"

/* The work of one session that may have used managed memory, up to the last; in turns
 * (gpc_pages_begin), as is everything here. */
static struct work {
	uint64_t given;            /* gpc_session_given() behind it; 0: it is done */
	struct gpc_stream *stream; /* that has all of it; NULL: several have */
	uint64_t number;           /* the stream's: another one may be in its place */
	struct gpc_context *context;
} works[GPC_SESSIONS_MAX];

static struct work *
work_of(const struct gpc_session *session)
{
	return &works[gpc_session_number(session)];
}

/* The number is looked at last: what is done of another stream says nothing. */
static bool
stream_has_done(struct gpc_stream *stream, uint64_t number, uint64_t given)
{
	return given <= atomic_load(&stream->done) &&
	       __atomic_load_n(&stream->number, __ATOMIC_ACQUIRE) == number;
}

/* What the program has waited for tells it, where that is all of the work. */
static bool
is_done(const struct work *work)
{
	return work->given == 0 ||
	       (work->context && work->given <= atomic_load(&work->context->done)) ||
	       (work->stream && stream_has_done(work->stream, work->number, work->given));
}

bool
gpc_managed_is_done(const struct gpc_session *session)
{
	return is_done(work_of(session));
}

void
gpc_managed_set_done(const struct gpc_session *session)
{
	work_of(session)->given = 0;
}

static CUresult
begun(const struct gpc_session *session, bool given)
{
	CUresult result;

	if (given)
		return CUDA_SUCCESS;
	gpc_pages_end();
	result = gpc_session_status((struct gpc_session *)session);
	return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult
gpc_managed_begin(const struct gpc_session *session)
{
	gpc_pages_begin();
	return begun(session, gpc_pages_give(session));
}

CUresult
gpc_managed_begin_copy(const struct gpc_session *session, uint64_t dst, uint64_t dst_size,
		       uint64_t src, uint64_t src_size)
{
	bool given;

	gpc_pages_begin();
	given = src_size == 0 || gpc_pages_give_part(src, src_size, false);
	given = given && (dst_size == 0 || gpc_pages_give_part(dst, dst_size, true));
	return begun(session, given);
}

void
gpc_managed_end(struct gpc_stream *stream)
{
	struct work *work;

	if (stream) {
		work = work_of(stream->context->scope.session);
		if (is_done(work)) {
			work->stream = stream;
			work->number = stream->number;
			work->context = stream->context;
		}
		if (work->stream != stream || work->number != stream->number)
			work->stream = NULL;
		if (work->context != stream->context)
			work->context = NULL;
		work->given = gpc_session_given(stream->context->scope.session);
	}
	gpc_pages_end();
}

bool
gpc_managed_is(uint64_t base, uint64_t size)
{
	return gpc_pages_any() && gpc_pages_have(base, size);
}
