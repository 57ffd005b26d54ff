/* SPDX-License-Identifier: Apache-2.0 */
/* Messages from a session to its client: replies, data, notes, and deferred errors. */
#include "base/lock.h"
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/common/base/log.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "transport/transport.h"

#include <endian.h>
#include <string.h>

/* Maximum kernel output in one message. */
#define PRINT_MAX ((size_t)64 << 10)

static int
send_records(struct gpd_session *session, const struct iovec *data, int data_count,
	     const struct iovec *bulk, int bulk_count) GP_LOCKED(session->send.lock)
{
	int r = gp_conn_send(session->conn, data, data_count, bulk, bulk_count);

	if (r == -ETIMEDOUT)
		gpd_session_stop(session, gp_conn_error(session->conn));
	if (r > 0)
		r = -EMSGSIZE;
	return r;
}

static void
send_error(struct gpd_session *session, CUresult result, bool sticky, uint16_t call)
	GP_LOCKED(session->send.lock)
{
	struct {
		struct gp_header header;
		uint32_t result, sticky, call, context;
	} note = { .result = htole32((uint32_t)result),
		   .sticky = htole32(sticky),
		   .call = htole32(call) };
	const struct gp_header header = { .size = sizeof(note), .call = GP_NOTE_ERROR };
	const struct iovec iov = { &note, sizeof(note) };

	gp_header_encode(&header, &note.header);
	(void)send_records(session, &iov, 1, NULL, 0);
}

/* Sends a note, with bulk unless it is empty. */
static int
send_note(struct gpd_session *session, const void *note, size_t size, struct iovec bulk)
{
	const struct iovec data = { (void *)note, size };
	int r;

	pthread_mutex_lock(&session->send.lock);
	r = send_records(session, &data, 1, &bulk, bulk.iov_len != 0);
	pthread_mutex_unlock(&session->send.lock);
	return r;
}

static int
send_text_locked(struct gpd_session *session, enum gp_note note, const char *text, size_t size)
	GP_LOCKED(session->send.lock)
{
	size_t capacity = sizeof(struct gp_header) + GP_ENC_BYTES_SIZE(size);
	struct gp_header header = { .call = note };
	uint8_t *record = malloc(capacity);
	struct gp_enc enc;
	struct iovec iov;
	int r;

	if (!record)
		return -ENOMEM;
	gp_enc_init(&enc, record + sizeof(header), capacity - sizeof(header));
	gp_enc_bytes(&enc, (struct gp_bytes){ text, size });
	gp_enc_pad(&enc);
	header.size = (uint32_t)(sizeof(header) + gp_enc_size(&enc));
	gp_header_encode(&header, record);
	iov = (struct iovec){ record, header.size };
	r = send_records(session, &iov, 1, NULL, 0);
	free(record);
	return r;
}

/* Sends the driver's message about the session's kernel, before the error. */
static void
complaint_send(struct gpd_session *session) GP_LOCKED(session->send.lock)
{
	if (session->send.complaint)
		(void)send_text_locked(session, GP_NOTE_COMPLAIN, session->send.complaint,
				       strlen(session->send.complaint));
	free(session->send.complaint);
	session->send.complaint = NULL;
}

/* Sent before a reply that may report the same error, so that the client's next call cannot
 * succeed. */
static void
errors_send(struct gpd_session *session) GP_LOCKED(session->send.lock)
{
	CUresult sticky = (CUresult)atomic_load(&session->sticky);

	if (sticky != CUDA_SUCCESS && !atomic_load(&session->send.sticky_reported)) {
		complaint_send(session);
		send_error(session, sticky, true, 0);
		atomic_store(&session->send.sticky_reported, true);
	} else if (session->send.deferred != CUDA_SUCCESS) {
		send_error(session, session->send.deferred, false, session->send.deferred_call);
		session->send.deferred = CUDA_SUCCESS;
	}
}

/* One of inside and bulk may be empty. */
static int
send_reply(struct gpd_session *session, struct gp_header header, struct iovec inside,
	   struct iovec bulk)
{
	static const uint64_t padding;
	const size_t padded = (inside.iov_len + 7) & ~(size_t)7;
	struct gp_header wire;
	const struct iovec iov[] = {
		{ &wire, sizeof(wire) },
		inside,
		{ (void *)&padding, padded - inside.iov_len },
	};
	int r;

	header.size = (uint32_t)(sizeof(header) + padded);
	header.flags = GP_FRAME_REPLY | (bulk.iov_len ? GP_FRAME_BULK : 0);
	gp_header_encode(&header, &wire);
	pthread_mutex_lock(&session->send.lock);
	errors_send(session);
	r = send_records(session, iov, 3, &bulk, bulk.iov_len != 0);
	pthread_mutex_unlock(&session->send.lock);
	return r;
}

int
gpd_session_reply(struct gpd_session *session, uint16_t call, uint32_t request, CUresult result,
		  const void *fields, size_t size)
{
	gpd_account_throttle_fields(&session->account, size, GPD_ACCOUNT_FREE_BYTES);
	return gpd_session_reply_unthrottled(session, call, request, result, fields, size);
}

int
gpd_session_reply_unthrottled(struct gpd_session *session, uint16_t call, uint32_t request,
			      CUresult result, const void *fields, size_t size)
{
	const struct gp_header header = { .call = call,
					  .request = request,
					  .context = (uint32_t)result };
	const struct iovec all = { (void *)fields, size }, none = { 0 };

	if (size > GP_REPLY_FIELDS_MAX)
		return send_reply(session, header, none, all);
	return send_reply(session, header, all, none);
}

int
gpd_session_reply_data(struct gpd_session *session, uint16_t call, uint32_t request,
		       const void *data, size_t size)
{
	const struct gp_header header = { .call = call,
					  .request = request,
					  .context = CUDA_SUCCESS };

	gpd_account_throttle_all(&session->account, size);
	return send_reply(session, header, (struct iovec){ 0 },
			  (struct iovec){ (void *)data, size });
}

void
gpd_session_recall(struct gpd_session *session)
{
	uint32_t request;

	if (atomic_load(&session->send.keep_request) == 0 ||
	    atomic_load(&session->account.entry->cache_state) != GPD_CACHE_RECALLED)
		return;
	request = atomic_exchange(&session->send.keep_request, 0);
	if (request)
		(void)gpd_session_reply(session, GP_CALL_gpMemoryKeep, request, CUDA_SUCCESS, NULL,
					0);
}

int
gpd_session_send_data(struct gpd_session *session, uint32_t request, uint64_t offset,
		      const void *data, size_t size)
{
	struct {
		struct gp_header header;
		uint64_t offset, size;
	} note = { .offset = htole64(offset), .size = htole64(size) };
	struct gp_header header = {
		.size = sizeof(note),
		.call = GP_NOTE_DATA,
		.flags = GP_FRAME_BULK,
		.request = request,
	};
	gp_header_encode(&header, &note.header);
	gpd_account_throttle_all(&session->account, size);
	return send_note(session, &note, sizeof(note), (struct iovec){ (void *)data, size });
}

int
gpd_session_send_note(struct gpd_session *session, enum gp_note kind, uint32_t first,
		      uint32_t second)
{
	struct {
		struct gp_header header;
		uint32_t first, second;
	} note = { .first = htole32(first), .second = htole32(second) };
	struct gp_header header = { .size = sizeof(note), .call = (uint16_t)kind };
	gp_header_encode(&header, &note.header);
	return send_note(session, &note, sizeof(note), (struct iovec){ 0 });
}

static int
send_text(struct gpd_session *session, enum gp_note note, const char *text, size_t size)
{
	int r;

	pthread_mutex_lock(&session->send.lock);
	r = send_text_locked(session, note, text, size);
	pthread_mutex_unlock(&session->send.lock);
	return r;
}

int
gpd_session_send_print(struct gpd_session *session, const char *text, size_t size)
{
	int r = 0;

	while (size && r == 0) {
		size_t part = size < PRINT_MAX ? size : PRINT_MAX;

		r = send_text(session, GP_NOTE_PRINT, text, part);
		text += part;
		size -= part;
	}
	return r;
}

int
gpd_session_send_complaint(struct gpd_session *session, const char *text)
{
	return send_text(session, GP_NOTE_COMPLAIN, text, strlen(text));
}

void
gpd_session_refuse_handle(struct gpd_session *session, const char *why)
{
	char line[200];

	gpd_session_log(session, GPD_LOG_WARNING, "an IPC handle is refused: %s", why);
	(void)snprintf(line, sizeof(line), "gpupool: an IPC handle is refused: %s\n", why);
	(void)gpd_session_send_complaint(session, line);
}

void
gpd_session_report_sticky(struct gpd_session *session)
{
	pthread_mutex_lock(&session->send.lock);
	errors_send(session);
	pthread_mutex_unlock(&session->send.lock);
}

void
gpd_session_defer(struct gpd_session *session, CUresult result, uint16_t call)
{
	if (gpd_driver_is_sticky(result)) {
		gpd_session_poison(session, result);
		return;
	}
	pthread_mutex_lock(&session->send.lock);
	if (session->send.deferred == CUDA_SUCCESS) {
		session->send.deferred = result;
		session->send.deferred_call = call;
	}
	pthread_mutex_unlock(&session->send.lock);
	gpd_debug("session %llu (%s): call 0x%04x failed with %d", (unsigned long long)session->id,
		  session->peer, call, (int)result);
}
