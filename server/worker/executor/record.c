/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/executor/record.h"

#include "base/clock.h"
#include "gpd_calls.h"
#include "server/common/base/log.h"
#include "server/worker/copy/copy.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_gate.h"
#include "server/worker/stream_ops/deferred_queue.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATE_NAP_NS 500000

static bool
dump_is_enabled(void)
{
	static atomic_int wanted = -1;
	int now = atomic_load_explicit(&wanted, memory_order_relaxed);

	if (now < 0) {
		const char *text = getenv("GPUPOOL_DUMP");

		now = gpd_log_level >= GPD_LOG_DEBUG || (text && strcmp(text, "1") == 0);
		atomic_store_explicit(&wanted, now, memory_order_relaxed);
	}
	return now;
}

static int
session_fail_no_memory(struct gpd_session *session)
{
	gpd_session_violation(session, "out of memory for records that wait");
	return -EPROTO;
}

/* Returns 0, or -EPROTO if the session must end. */
static int
record_execute(struct gpd_session *session, const struct gp_header *header, const void *fields,
	       size_t size)
{
	session->current.request = header->request;
	session->current.call = header->call;
	session->current.context = header->context;
	if (!gpd_call_is_async_launch(header->call))
		gpd_issue_barrier(&session->issue);
	gpd_copy_wait_before_call(session, header->call, fields, size);
	if (gpd_dispatch(session, header, fields, size)) {
		gpd_session_violation(session, "it sent a malformed call 0x%04x", header->call);
		return -EPROTO;
	}
	if (__builtin_expect(session->streams->depths.filled || session->copies->added, 0) &&
	    gpd_deferred_gates_after_record(session))
		return session_fail_no_memory(session);
	if (session->current.entry)
		gpd_deferred_remove(session, session->current.entry);
	session->current.entry = NULL;
	return 0;
}

/* Carries out the deferred records that no longer have to wait. */
static int
deferred_execute(struct gpd_session *session)
{
	const struct gpd_deferred_record *record;
	int r = 0;

	while (r == 0 && atomic_load(&session->sticky) == CUDA_SUCCESS &&
	       !atomic_load_explicit(&session->closing, memory_order_relaxed) &&
	       (session->current.entry = gpd_deferred_pop(session, &record))) {
		const struct gpd_gated_record gated = { record->header.call, record->fields,
							record->size, record->bulk_size };

		r = gpd_deferred_gates_before_deferred(session, &gated);
		if (r) {
			gpd_deferred_postpone(session->current.entry);
			session->current.entry = NULL;
			r = r < 0 ? session_fail_no_memory(session) : 0;
			continue;
		}
		session->current.bulk_read = record->bulk;
		session->current.bulk_left = record->bulk_size;
		r = record_execute(session, &record->header, record->fields, record->size);
		session->current.bulk_read = NULL;
		session->current.bulk_left = 0;
	}
	return r;
}

int
gpd_executor_run_deferred(struct gpd_session *session)
{
	int r = deferred_execute(session);

	gpd_schedule_end_batches(session->account.schedule);
	return r;
}

int
gpd_executor_poll_gates(struct gpd_session *session)
{
	return gpd_deferred_gates_poll(session) ? gpd_executor_run_deferred(session) : 0;
}

/* Polls the gates while a record does not fit into the deferred queue. */
static int
gate_wait(struct gpd_session *session)
{
	uint64_t bulk_left = session->current.bulk_left;
	int r = gpd_executor_poll_gates(session);

	session->current.bulk_left = bulk_left;
	if (r == 0)
		gp_sleep_ns(GATE_NAP_NS);
	return r;
}

/* Processes a new record. Returns 0, or -EPROTO if the session must end. */
static int
record_process(struct gpd_session *session, const struct gp_header *header, const void *fields,
	       size_t size)
{
	const struct gpd_gated_record gated = { header->call, fields, size,
						session->current.bulk_left };
	CUresult sticky = (CUresult)atomic_load(&session->sticky);
	int r;

	session->current.call = header->call;
	if (dump_is_enabled())
		gp_dump_record(stderr, header, fields, size);
	if (sticky != CUDA_SUCCESS) {
		if (header->request)
			(void)gpd_session_reply(session, header->call, header->request, sticky,
						NULL, 0);
		return 0;
	}
	if (gpd_deferred_gates_before_record(session, &gated))
		return session_fail_no_memory(session);
	if (!session->stream_ops->queue && !gp_call_awaits_host(header->call))
		return record_execute(session, header, fields, size);
	while ((r = gpd_deferred_add(session, header, fields, size, &session->current.entry)) ==
	       -EAGAIN) {
		if (gate_wait(session) || atomic_load(&session->closing))
			return -EPROTO;
	}
	if (r == 0)
		r = record_execute(session, header, fields, size);
	return r < 0 ? r : deferred_execute(session);
}

int
gpd_executor_run_message(struct gpd_session *session, const struct gp_message *message)
{
	const uint8_t *at = message->data;
	size_t left = message->size;
	bool bulk_used = message->bulk_size == 0;

	gpd_issue_message(&session->issue, left >= GPD_ISSUE_DEEP && gpd_sessions_may_spin());
	while (left) {
		struct gp_header header;
		bool bulk;

		if (gp_header_decode(&header, at, left)) {
			gpd_session_violation(session, "it sent a malformed record");
			return -EPROTO;
		}
		bulk = header.flags & GP_FRAME_BULK;
		if (bulk && header.size != left) {
			gpd_session_violation(session, "data belongs to a record's middle");
			return -EPROTO;
		}
		session->current.bulk_left = bulk ? message->bulk_size : 0;
		bulk_used = bulk_used || bulk;
		if (record_process(session, &header, at + sizeof(header),
				   header.size - sizeof(header)))
			return -EPROTO;
		if (atomic_load_explicit(&session->closing, memory_order_relaxed))
			return -EPROTO;
		at += header.size;
		left -= header.size;
	}
	gpd_schedule_end_batches(session->account.schedule);
	if (!bulk_used) {
		gpd_session_violation(session, "it sent data without a call");
		return -EPROTO;
	}
	return 0;
}
