/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of stream and event queries: a context with streams over a scripted daemon
 * (fake_daemon.h), whose work completes when the test calls finish_work().
 *
 * Ownership: begin_idle() creates everything and end_idle() frees it.
 * Threads: the daemon's thread uses the atomic variables and open_waits, the test's thread uses
 * all.
 * Errors: failures fail the test.
 */
#ifndef IDLE_FIXTURE_H
#define IDLE_FIXTURE_H

#include "client/context/lifecycle.h"
#include "client/copy/copy_out.h"
#include "client/session/session_internal.h"
#include "client/stream/completion_watch.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "tests/unit/client/call_fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Timeout of waits for the client, in milliseconds. */
#define PATIENCE_MS 20000

/* The context, its device, its default stream and two other streams. */
static struct gpc_device device;
static struct gpc_context context;
static struct gpc_stream legacy, streams[2];
/* Whether the GPU's work is done. Until then the daemon does not reply to calls that wait for it
 * (open_waits). */
static atomic_bool done;
/* While true, the daemon replies to a query after the test has posted daemon.proceed. */
static atomic_bool held;
/* The fixture's session, borrowed. */
static struct gpc_session *session;
/* Whether copies to the host fail with CUDA_ERROR_INVALID_VALUE. */
static atomic_bool copies_fail;
/* Headers of the calls that wait for the GPU's work, in order of arrival; open_count is their
 * number. */
static struct gp_header open_waits[2 * GPC_WATCHES_MAX];
static atomic_uint open_count;

/* Returns whether a thread of the client waits for a reply. */
static inline bool
is_waited_for(void)
{
	bool waits;

	(void)pthread_mutex_lock(&session->receiver.lock);
	waits = session->receiver.waiters != NULL;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	return waits;
}

/* Replies to a copy after the client has begun to wait for any reply. Returns 0. */
static inline int
answer_copy(struct fake_daemon *daemon, const struct gp_header *header)
{
	static const uint64_t bytes;

	for (int i = 0; i < PATIENCE_MS && !is_waited_for(); i++)
		(void)usleep(1000);
	if (!atomic_load(&copies_fail))
		fake_daemon_note_data(daemon, header->request, 0, &bytes, sizeof(bytes));
	fake_daemon_reply(daemon, header,
			  atomic_load(&copies_fail) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS, NULL,
			  0);
	return 0;
}

/* The `answer` function of the daemon; runs in the daemon's thread. Returns 0. */
static inline int
answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	const bool asks =
		header->call == GP_CALL_cuEventQuery || header->call == GP_CALL_cuStreamQuery;
	const bool waits = header->call == GP_CALL_cuEventSynchronize ||
			   header->call == GP_CALL_cuStreamSynchronize;
	static const uint64_t time; /* a float, padded to 8 bytes */

	if (header->call == GP_CALL_gpCopyOut)
		return answer_copy(daemon, header);
	if (header->call == GP_CALL_cuEventElapsedTime_v2) {
		fake_daemon_reply(daemon, header, CUDA_SUCCESS, &time, sizeof(time));
		return 0;
	}
	if (atomic_load(&done) || !(asks || waits))
		return fake_daemon_answer(daemon, header, fields, size);
	if (asks) {
		if (atomic_load(&held))
			(void)sem_wait(&daemon->proceed);
		fake_daemon_reply(daemon, header, CUDA_ERROR_NOT_READY, NULL, 0);
		return 0;
	}
	assert_in_range(open_count, 0, 2 * GPC_WATCHES_MAX - 1);
	open_waits[atomic_load(&open_count)] = *header;
	atomic_fetch_add(&open_count, 1);
	return 0;
}

/* Makes a stream of the context with a handle. */
static inline void
add_stream(struct gpc_stream *stream)
{
	memset(stream, 0, sizeof(*stream));
	stream->context = &context;
	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &stream->handle), 0);
	gpc_handle_publish(&stream->handle);
}

/* Starts the daemon and creates the context with its streams, and makes it current. The GPU has
 * no work. Returns the fixture for end_idle(). */
static inline struct fixture *
begin_idle(void **state)
{
	struct fixture *fixture;

	atomic_store(&done, true);
	atomic_store(&open_count, 0);
	fixture = begin(state, answer);
	session = fixture->session;
	device = (struct gpc_device){ .session = fixture->session };
	memset(&context, 0, sizeof(context));
	context.device = &device;
	context.scope = (struct gpc_scope){ fixture->session, 1 };
	add_stream(&legacy);
	legacy.legacy = true;
	context.legacy = &legacy;
	for (unsigned int i = 0; i < 2; i++)
		add_stream(&streams[i]);
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	assert_int_equal(gpc_context_set_current(&context), CUDA_SUCCESS);
	return fixture;
}

/* Destroys the context's objects and stops the daemon. */
static inline void
end_idle(struct fixture *fixture)
{
	gpc_stream_drop_context(&context);
	gpc_event_drop_context(&context);
	assert_int_equal(gpc_context_set_current(NULL), CUDA_SUCCESS);
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	end(fixture);
}

/* Completes the GPU's work: replies to open_waits, and lets later waits succeed at once. */
static inline void
finish_work(struct fixture *fixture)
{
	assert_int_equal(fence(), CUDA_SUCCESS);
	atomic_store(&done, true);
	for (unsigned int i = 0; i < atomic_load(&open_count); i++)
		fake_daemon_reply(&fixture->daemon, &open_waits[i], CUDA_SUCCESS, NULL, 0);
}

/* Posts a fill to the stream, so that its completion is unknown to the client. */
static inline void
give_work(const struct gpc_stream *stream)
{
	struct gp_args_gpFill args = { .stream = stream->handle.id };

	assert_int_equal(gpc_post_gpFill(&context, &args), CUDA_SUCCESS);
}

/* Waits until everything that was posted before has arrived, and returns the number of `call`
 * records that the daemon has received. */
static inline size_t
received(struct fixture *fixture, uint16_t call)
{
	return fake_daemon_received(&fixture->daemon, call);
}

/* Returns the result of cuStreamQuery() for the stream. */
static inline CUresult
query(struct gpc_stream *stream)
{
	struct gpc_stream *legacy_before = context.legacy;
	CUresult result;

	/* The NULL stream has no tokens, so a test can make any stream the NULL stream. */
	context.legacy = stream;
	result = gpc_cuStreamQuery(NULL);
	context.legacy = legacy_before;
	return result;
}

/* Returns a new event that was recorded on the default stream. */
static inline CUevent
make_event(void)
{
	CUevent event;

	assert_int_equal(gpc_cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	assert_int_equal(gpc_cuEventRecord(event, NULL), CUDA_SUCCESS);
	return event;
}

#endif /* IDLE_FIXTURE_H */
