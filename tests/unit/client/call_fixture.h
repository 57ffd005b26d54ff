/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the call stream have in common: a session to a scripted daemon, calls to send,
 * and running a list of tests once over tcp and once inside the process.
 */
#ifndef CALL_FIXTURE_H
#define CALL_FIXTURE_H

#include "gpc_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

typedef int fake_daemon_answer_function(struct fake_daemon *daemon, const struct gp_header *header,
					const void *fields, size_t size);

struct fixture {
	const char *scheme;
	struct fake_daemon daemon;
	struct gpc_session *session;
};

struct fixture *begin_limited(void **state, unsigned int max_outstanding,
			      fake_daemon_answer_function *answer);
struct fixture *begin(void **state, fake_daemon_answer_function *answer);
void end(struct fixture *fixture);

CUresult post(uint64_t dst);
CUresult ask(int device, struct gp_reply_gpMemoryInfo *reply);
CUresult fence(void);
CUresult copy_in(const void *data, size_t size);
/* For pthread_create(); writes the CUresult that arg points to. */
void *fence_in_thread(void *arg);

/* Of calls that fail, or whose replies come when the test says so. */
fake_daemon_answer_function refuse_memory_info, answer_when_told;

/* gpCopyOut is answered with so many bytes, of which byte i is 7 * i. */
#define DATA_SIZE 100000
fake_daemon_answer_function answer_with_data;
/* Takes them to where the request's arg points. */
int take_data(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size);

/* A done() that posts the semaphore which arg points to. */
void tell(struct gpc_request *request);

int run_over_both(const struct CMUnitTest *tests, size_t count);

#endif /* CALL_FIXTURE_H */
