/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/fake_daemon.h"

#include "gpc_calls.h"
#include "protocol/enc.h"
#include "tests/connection_pair.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
fake_daemon_connection(const char *scheme, struct gp_conn **near_p, struct gp_conn **far_p)
{
	char error[256], text[64];
	struct gp_listener *listener;
	struct gp_url url;

	if (strcmp(scheme, "unix") == 0) {
		assert_int_equal(connection_pair_create(near_p, far_p), 0);
		return;
	}
	(void)snprintf(text, sizeof(text), "%s://127.0.0.1:0", scheme);
	assert_int_equal(gp_url_parse(text, &url, error, sizeof(error)), 0);
	url.port = 0;
	assert_int_equal(gp_listen(&url, &listener, error, sizeof(error)), 0);
	assert_int_equal(
		gp_connect(gp_listener_url(listener), NULL, 0, 5000, near_p, error, sizeof(error)),
		0);
	assert_int_equal(gp_accept(listener, 5000, far_p), 0);
	gp_listener_destroy(listener);
}

static void
note_down(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	  size_t bulk_size)
{
	size_t index = atomic_load(&daemon->count);
	struct fake_daemon_record *record = &daemon->records[index % FAKE_DAEMON_RECORDS_MAX];

	record->header = *header;
	record->first_word = 0;
	if (header->size >= sizeof(*header) + 8)
		memcpy(&record->first_word, fields, 8);
	record->bulk_size = bulk_size;
	atomic_store(&daemon->count, index + 1);
}

static int
take_message(struct fake_daemon *daemon, const struct gp_message *message)
{
	const uint8_t *data = message->data;
	size_t left = message->size;

	while (left > 0) {
		const void *fields = data + sizeof(struct gp_header);
		struct gp_header header;
		int r;

		if (gp_header_decode(&header, data, left) != 0)
			abort();
		note_down(daemon, &header, fields,
			  header.flags & GP_FRAME_BULK ? message->bulk_size : 0);
		r = daemon->answer(daemon, &header, fields, header.size - sizeof(header));
		if (r != 0)
			return r;
		data += header.size;
		left -= header.size;
	}
	return 0;
}

static void *
run(void *arg)
{
	struct fake_daemon *daemon = arg;
	struct gp_message message;

	for (;;) {
		while (atomic_load(&daemon->hold))
			(void)usleep(1000);
		if (gp_conn_recv(daemon->conn, &message) != 0)
			break;
		atomic_fetch_add(&daemon->messages, 1);
		if (take_message(daemon, &message) != 0)
			break;
	}
	gp_conn_shutdown(daemon->conn);
	return NULL;
}

void
fake_daemon_start(struct fake_daemon *daemon, const char *scheme, unsigned int max_outstanding,
		  struct gpc_session **session_p)
{
	struct gpc_session_facts facts = { .granularity = 2 << 20, .max_bulk = GP_CONN_BULK_MAX };
	struct gp_conn *lane;

	if (!daemon->answer)
		daemon->answer = fake_daemon_answer;
	daemon->records = calloc(FAKE_DAEMON_RECORDS_MAX, sizeof(*daemon->records));
	(void)sem_init(&daemon->proceed, 0, 0);
	(void)pthread_mutex_init(&daemon->send_lock, NULL);
	fake_daemon_connection(scheme, &lane, &daemon->conn);
	assert_int_equal(gpc_session_create(lane, NULL, &facts, max_outstanding, session_p), 0);
	gpc_session_set(*session_p);
	assert_int_equal(pthread_create(&daemon->thread, NULL, run, daemon), 0);
}

void
fake_daemon_stop(struct fake_daemon *daemon, struct gpc_session *session)
{
	atomic_store(&daemon->hold, false);
	gpc_session_close(session, 2000);
	(void)sem_post(&daemon->proceed);
	(void)pthread_join(daemon->thread, NULL);
	gpc_session_set(NULL);
	gpc_session_destroy(session);
	gp_conn_destroy(daemon->conn);
	(void)pthread_mutex_destroy(&daemon->send_lock);
	(void)sem_destroy(&daemon->proceed);
	free(daemon->records);
}

void
fake_daemon_send(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		 size_t size, const void *bulk, size_t bulk_size)
{
	uint8_t wire[sizeof(*header)];
	struct iovec data[2] = { { wire, sizeof(wire) }, { (void *)fields, size } };
	struct iovec tail = { (void *)bulk, bulk_size };

	gp_header_encode(header, wire);
	(void)pthread_mutex_lock(&daemon->send_lock);
	(void)!gp_conn_send(daemon->conn, data, size ? 2 : 1, &tail, bulk_size ? 1 : 0);
	(void)pthread_mutex_unlock(&daemon->send_lock);
}

void
fake_daemon_reply(struct fake_daemon *daemon, const struct gp_header *to, CUresult result,
		  const void *fields, size_t size)
{
	struct gp_header header = {
		.size = (uint32_t)(sizeof(header) + size),
		.call = to->call,
		.flags = GP_FRAME_REPLY,
		.request = to->request,
		.context = result,
	};

	fake_daemon_send(daemon, &header, fields, size, NULL, 0);
}

void
fake_daemon_note_error(struct fake_daemon *daemon, CUresult result, bool sticky)
{
	fake_daemon_note_error_of(daemon, result, sticky, GP_CALL_gpFill);
}

void
fake_daemon_note_error_of(struct fake_daemon *daemon, CUresult result, bool sticky, uint16_t call)
{
	uint32_t fields[4] = { result, sticky, call, 0 };
	struct gp_header header = { .size = sizeof(header) + sizeof(fields),
				    .call = GP_NOTE_ERROR };

	fake_daemon_send(daemon, &header, fields, sizeof(fields), NULL, 0);
}

void
fake_daemon_note_print(struct fake_daemon *daemon, const char *text)
{
	struct gp_bytes bytes = { text, strlen(text) };
	struct gp_header header = { .call = GP_NOTE_PRINT };
	uint64_t fields[64];
	struct gp_enc enc;

	gp_enc_init(&enc, fields, sizeof(fields));
	gp_enc_bytes(&enc, bytes);
	header.size = (uint32_t)(sizeof(header) + gp_enc_size(&enc));
	fake_daemon_send(daemon, &header, fields, gp_enc_size(&enc), NULL, 0);
}

void
fake_daemon_note_data(struct fake_daemon *daemon, uint32_t request, uint64_t offset,
		      const void *data, size_t size)
{
	uint64_t fields[2] = { offset, size };
	struct gp_header header = {
		.size = sizeof(header) + sizeof(fields),
		.call = GP_NOTE_DATA,
		.flags = GP_FRAME_BULK,
		.request = request,
	};

	fake_daemon_send(daemon, &header, fields, sizeof(fields), data, size);
}

int
fake_daemon_answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		   size_t size)
{
	static const uint64_t zeros[8];
	/* Size of the reply's fields. Of the calls that tests use, only these have fields; all
	 * zeros mean that no memory is free. */
	size_t reply_size = header->call == GP_CALL_gpMemoryInfo    ? 16
			    : header->call == GP_CALL_gpMemoryGrant ? 8
								    : 0;

	if (header->request)
		fake_daemon_reply(daemon, header, CUDA_SUCCESS, zeros, reply_size);
	return 0;
}

bool
fake_daemon_wait_records(struct fake_daemon *daemon, size_t count)
{
	for (int i = 0; i < 5000; i++) {
		if (atomic_load(&daemon->count) >= count)
			return true;
		(void)usleep(1000);
	}
	return false;
}

size_t
fake_daemon_received(struct fake_daemon *daemon, uint16_t call)
{
	struct gp_args_gpFence args = { 0 };
	size_t count = 0;

	assert_int_equal(gpc_wait_gpFence(NULL, &args), CUDA_SUCCESS);
	for (size_t i = 0; i < atomic_load(&daemon->count); i++)
		count += daemon->records[i].header.call == call;
	return count;
}

void
fake_daemon_lacks(struct gpc_session *session, uint16_t call)
{
	struct gpc_session_facts *facts = (struct gpc_session_facts *)gpc_session_facts(session);

	facts->unknown_calls[call / 8] |= (uint8_t)(1u << call % 8);
}
