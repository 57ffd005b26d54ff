/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message of a daemon to a client that waits for it.  The first byte is the size of the bulk
 * tail, the rest the records of one message; the calls under way have the numbers 1 (with fields in
 * its reply), 2 (with data notes) and 3 (without a waiter).  All of them must end, for every input.
 */
#include "client/session/session.h"
#include "gpc_calls.h"
#include "tests/connection_pair.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
recv_data(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size)
{
	uint8_t bytes[256];

	if (size > sizeof(bytes))
		return -1;
	return gp_conn_recv_bulk(conn, bytes, size);
}

static void
count(struct gpc_request *request)
{
	++*(int *)request->arg;
}

static void
send_input(struct gp_conn *conn, const uint8_t *data, size_t size)
{
	static const uint8_t zeros[256];
	struct iovec records = { (void *)(data + 1), size - 1 };
	struct iovec bulk = { (void *)zeros, data[0] };

	if (gp_conn_send(conn, &records, 1, &bulk, data[0] ? 1 : 0) != 0)
		abort();
	gp_conn_shutdown(conn);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpc_session_facts facts = { .max_bulk = GP_CONN_BULK_MAX };
	struct gp_args_gpMemoryInfo info_args = { 0 };
	struct gp_args_gpCopyOut copy_args = { .width = 8, .height = 1 };
	struct gp_args_gpFence fence_args = { 0 };
	int done = 0;
	struct gpc_request info = { 0 }, copy = { .data = recv_data };
	struct gpc_request fence = { .done = count, .arg = &done };
	struct gpc_session *session;
	struct gp_conn *near, *far;

	if (size < 1 || size > GP_CONN_MESSAGE_MAX)
		return 0;
	if (!freopen("/dev/null", "w", stdout) || connection_pair_create(&near, &far) != 0 ||
	    gpc_session_create(near, NULL, &facts, 100, &session) != 0)
		abort();
	gpc_session_set(session);
	if (gpc_start_gpMemoryInfo(NULL, &info_args, &info) != CUDA_SUCCESS ||
	    gpc_start_gpCopyOut(NULL, &copy_args, &copy) != CUDA_SUCCESS ||
	    gpc_start_gpFence(NULL, &fence_args, &fence) != CUDA_SUCCESS)
		abort();
	send_input(far, data, size);
	(void)gpc_request_wait(&info);
	(void)gpc_request_wait(&copy);
	gpc_session_close(session, 60000);
	if (done != 1 || !info.complete || !copy.complete)
		abort();
	free(info.reply);
	free(copy.reply);
	free(fence.reply);
	gpc_session_set(NULL);
	gpc_session_destroy(session);
	gp_conn_destroy(far);
	return 0;
}
