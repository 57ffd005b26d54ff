/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/call_fixture.h"

#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define MANY_OUTSTANDING 1024
#define TESTS_MAX 64

struct fixture *
begin_limited(void **state, unsigned int max_outstanding, fake_daemon_answer_function *answer)
{
	struct fixture *fixture = *state;
	const char *scheme = fixture->scheme;

	memset(fixture, 0, sizeof(*fixture));
	fixture->scheme = scheme;
	fixture->daemon.answer = answer;
	fake_daemon_start(&fixture->daemon, scheme, max_outstanding, &fixture->session);
	return fixture;
}

struct fixture *
begin(void **state, fake_daemon_answer_function *answer)
{
	return begin_limited(state, MANY_OUTSTANDING, answer);
}

void
end(struct fixture *fixture)
{
	fake_daemon_stop(&fixture->daemon, fixture->session);
}

CUresult
post(uint64_t dst)
{
	struct gp_args_gpFill args = { .dst = dst, .stream = 1 };

	return gpc_post_gpFill(NULL, &args);
}

CUresult
ask(int device, struct gp_reply_gpMemoryInfo *reply)
{
	struct gp_args_gpMemoryInfo args = { .device = device };

	return gpc_wait_gpMemoryInfo(NULL, &args, reply);
}

CUresult
fence(void)
{
	struct gp_args_gpFence args = { 0 };

	return gpc_wait_gpFence(NULL, &args);
}

CUresult
copy_in(const void *data, size_t size)
{
	struct gp_args_gpCopyIn args = { .stream = 1, .width = size, .height = 1 };
	struct iovec bulk = { (void *)data, size };

	return gpc_post_gpCopyIn(NULL, &args, &bulk, 1);
}

void *
fence_in_thread(void *arg)
{
	CUresult *result = arg;

	*result = fence();
	return NULL;
}

int
refuse_memory_info(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		   size_t size)
{
	if (header->call != GP_CALL_gpMemoryInfo)
		return fake_daemon_answer(daemon, header, fields, size);
	fake_daemon_reply(daemon, header, CUDA_ERROR_INVALID_DEVICE, NULL, 0);
	return 0;
}

int
answer_when_told(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		 size_t size)
{
	(void)sem_wait(&daemon->proceed);
	return fake_daemon_answer(daemon, header, fields, size);
}

int
answer_with_data(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		 size_t size)
{
	static uint8_t bytes[DATA_SIZE];

	if (header->call != GP_CALL_gpCopyOut)
		return fake_daemon_answer(daemon, header, fields, size);
	for (size_t i = 0; i < DATA_SIZE; i++)
		bytes[i] = (uint8_t)(i * 7);
	fake_daemon_note_data(daemon, header->request, 0, bytes, 60000);
	fake_daemon_note_data(daemon, header->request, 60000, bytes + 60000, DATA_SIZE - 60000);
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, NULL, 0);
	return 0;
}

int
take_data(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size)
{
	if (offset > DATA_SIZE || size > DATA_SIZE - offset)
		return -1;
	return gp_conn_recv_bulk(conn, (uint8_t *)request->arg + offset, size);
}

void
tell(struct gpc_request *request)
{
	(void)sem_post(request->arg);
}

int
run_over_both(const struct CMUnitTest *tests, size_t count)
{
	struct fixture *tcp = calloc(1, sizeof(*tcp)), *local = calloc(1, sizeof(*local));
	struct CMUnitTest both[2 * TESTS_MAX];
	int failed;

	assert_true(count <= TESTS_MAX);
	tcp->scheme = "tcp";
	local->scheme = "unix";
	for (size_t i = 0; i < count; i++) {
		both[i] = both[count + i] = tests[i];
		both[i].initial_state = tcp;
		both[count + i].initial_state = local;
	}
	failed = _cmocka_run_group_tests("over tcp, then over a socket pair", both, 2 * count, NULL,
					 NULL);
	free(tcp);
	free(local);
	return failed;
}
