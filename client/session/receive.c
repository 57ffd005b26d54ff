/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/receive.h"

#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/session/host_queue.h"
#include "client/session/session_internal.h"
#include "gp_calls.h"
#include "protocol/dec.h"
#include "protocol/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct record {
	struct gp_header header;
	const uint8_t *fields;
	size_t size;      /* size of the fields */
	size_t bulk_size; /* bulk size of the message, if this is its last record */
};

static int
lane_fail_malformed(struct gpc_session *session, const char *what)
{
	return gp_conn_fail(session->lane, -EPROTO, "malformed %s", what);
}

/* Returns the connection's own error if there is one; otherwise the offset or the size is
 * invalid. */
static int
request_deliver_data(struct gpc_session *session, struct gpc_request *request, uint64_t offset,
		     uint64_t size)
{
	int r = request->data(request, session->lane, offset, size);

	if (r == 0)
		return 0;
	return r < 0 && *gp_conn_error(session->lane) ? r : lane_fail_malformed(session, "data");
}

/* The fields of a long reply are its bulk; so is the data of a short copy. */
static int
reply_recv_fields(struct gpc_session *session, const struct record *record,
		  struct gpc_request *request)
{
	size_t size = record->bulk_size > 0 ? record->bulk_size : record->size;

	if (size == 0)
		return 0;
	if (record->bulk_size > 0 && request->data)
		return request_deliver_data(session, request, 0, size);
	request->reply = malloc(size);
	if (!request->reply)
		return gp_conn_fail(session->lane, -ENOMEM, "no memory for a reply");
	request->reply_size = size;
	if (record->bulk_size > 0)
		return gp_conn_recv_bulk(session->lane, request->reply, size);
	memcpy(request->reply, record->fields, size);
	return 0;
}

static int
record_handle_reply(struct gpc_session *session, const struct record *record)
{
	struct gpc_request *request = gpc_receiver_find(session, record->header.request);
	int r;

	if (!request || request->call != record->header.call ||
	    record->bulk_size > GP_REPLY_BULK_MAX || (record->bulk_size > 0 && record->size > 0))
		return lane_fail_malformed(session, "reply");
	r = reply_recv_fields(session, record, request);
	if (r != 0)
		return r;
	gpc_receiver_complete(session, request, (CUresult)record->header.context);
	return 0;
}

static int
record_handle_data(struct gpc_session *session, const struct record *record)
{
	struct gpc_request *request = gpc_receiver_find(session, record->header.request);
	uint64_t offset, size;
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	offset = gp_dec_u64(&dec);
	size = gp_dec_u64(&dec);
	if (!gp_dec_done(&dec) || !request || !request->data || size != record->bulk_size)
		return lane_fail_malformed(session, "data note");
	return request_deliver_data(session, request, offset, size);
}

static int
record_handle_error(struct gpc_session *session, const struct record *record)
{
	uint32_t result, sticky, call;
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	result = gp_dec_u32(&dec);
	sticky = gp_dec_u32(&dec);
	call = gp_dec_u32(&dec);
	(void)gp_dec_u32(&dec); /* reserved */
	if (!gp_dec_done(&dec) || result == CUDA_SUCCESS || result > CUDA_ERROR_UNKNOWN ||
	    record->bulk_size > 0)
		return lane_fail_malformed(session, "error note");
	if (!sticky)
		gpc_log(GPC_LOG_ERROR, "%s: %s failed with error %u", gp_conn_peer(session->lane),
			gpc_call_name((uint16_t)call), result);
	/* Results of earlier checks are no longer valid. */
	if (gp_call_invalidates_checks((uint16_t)call))
		gpc_session_revise(session);
	if (sticky)
		gpc_session_fault(session, (CUresult)result);
	else
		gpc_session_defer(session, (CUresult)result);
	return 0;
}

static int
record_handle_print(struct gpc_session *session, const struct record *record, FILE *file)
{
	struct gp_bytes text;
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	text = gp_dec_bytes(&dec);
	if (!gp_dec_done(&dec) || record->bulk_size > 0)
		return lane_fail_malformed(session, "print note");
	if (text.size > 0) {
		(void)fwrite(text.data, 1, text.size, file);
		(void)fflush(file);
	}
	return 0;
}

static int
record_handle_function(struct gpc_session *session, const struct record *record)
{
	uint32_t function, result;
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	function = gp_dec_u32(&dec);
	result = gp_dec_u32(&dec);
	if (!gp_dec_done(&dec) || result > CUDA_ERROR_UNKNOWN || record->bulk_size > 0 ||
	    !gpc_host_queue_due(session, function, (CUresult)result))
		return lane_fail_malformed(session, "host function note");
	return 0;
}

static int
record_handle_waits(struct gpc_session *session, const struct record *record)
{
	struct gp_dec dec;
	uint32_t count;

	gp_dec_init(&dec, record->fields, record->size);
	count = gp_dec_u32(&dec);
	(void)gp_dec_u32(&dec); /* reserved */
	if (!gp_dec_done(&dec) || record->bulk_size > 0 || !gpc_call_waits_done(session, count))
		return lane_fail_malformed(session, "note of waits");
	return 0;
}

static int
record_handle_publish(struct gpc_session *session, const struct record *record)
{
	const struct gpc_session_callbacks *callbacks = atomic_load(&session->callbacks);
	struct gp_dec dec;
	uint32_t number;

	gp_dec_init(&dec, record->fields, record->size);
	number = gp_dec_u32(&dec);
	(void)gp_dec_u32(&dec); /* reserved */
	if (!gp_dec_done(&dec) || record->bulk_size > 0 || !number || !callbacks)
		return lane_fail_malformed(session, "publish note");
	callbacks->publish(callbacks->arg, number);
	return 0;
}

static int
record_handle_share(struct gpc_session *session, const struct record *record)
{
	struct gp_dec dec;

	gp_dec_init(&dec, record->fields, record->size);
	(void)gp_dec_u32(&dec); /* device */
	(void)gp_dec_u32(&dec); /* reserved */
	if (!gp_dec_done(&dec) || record->bulk_size > 0)
		return lane_fail_malformed(session, "share note");
	gpc_session_revise(session);
	return 0;
}

static int
record_handle(struct gpc_session *session, const struct record *record)
{
	if (record->header.flags & ~(GP_FRAME_BULK | GP_FRAME_REPLY))
		return lane_fail_malformed(session, "record");
	if (record->header.flags & GP_FRAME_REPLY)
		return record_handle_reply(session, record);
	switch (record->header.call) {
	case GP_NOTE_DATA:
		return record_handle_data(session, record);
	case GP_NOTE_ERROR:
		return record_handle_error(session, record);
	case GP_NOTE_PRINT:
		return record_handle_print(session, record, stdout);
	case GP_NOTE_COMPLAIN:
		return record_handle_print(session, record, stderr);
	case GP_NOTE_FUNCTION:
		return record_handle_function(session, record);
	case GP_NOTE_SHARE:
		return record_handle_share(session, record);
	case GP_NOTE_WAITS:
		return record_handle_waits(session, record);
	case GP_NOTE_PUBLISH:
		return record_handle_publish(session, record);
	default:
		return lane_fail_malformed(session, "note");
	}
}

static int
message_handle_records(struct gpc_session *session, const struct gp_message *message)
{
	const uint8_t *data = message->data;
	size_t left = message->size;

	if (left == 0)
		return lane_fail_malformed(session, "message");
	while (left > 0) {
		struct record record = { .fields = data + sizeof(struct gp_header) };
		bool last;
		int r;

		if (gp_header_decode(&record.header, data, left) != 0)
			return lane_fail_malformed(session, "record");
		record.size = record.header.size - sizeof(struct gp_header);
		last = record.header.size == left;
		if (last)
			record.bulk_size = message->bulk_size;
		if (!(record.header.flags & GP_FRAME_BULK) ? record.bulk_size > 0 : !last)
			return lane_fail_malformed(session, "record");
		r = record_handle(session, &record);
		if (r != 0)
			return r;
		data += record.header.size;
		left -= record.header.size;
	}
	return 0;
}

int
gpc_receive(struct gpc_session *session)
{
	struct gp_message message;
	int r = gp_conn_recv(session->lane, &message);

	if (r != 0)
		return r;
	gpc_silence_note_progress(&session->silence);
	gpc_stats_received(message.size + message.bulk_size);
	return message_handle_records(session, &message);
}
