/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of the client's calls: a session with a scripted daemon (fake_daemon.h),
 * functions that send calls, and a runner that executes all tests over tcp and again inside the
 * process.
 *
 * Ownership: begin() creates the daemon and the session, end() frees them.
 * Threads: answer functions run in the daemon's thread.
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
/* A thread that calls fence() and stores the result in the CUresult that `arg` points to. */
void *fence_in_thread(void *arg);

/* Answer functions: one rejects gpMemoryInfo, the other replies after daemon.proceed has been
 * posted. */
fake_daemon_answer_function refuse_memory_info, answer_when_told;

/* An answer function that replies to gpCopyOut with DATA_SIZE bytes, of which byte i is 7 * i. */
#define DATA_SIZE 100000
fake_daemon_answer_function answer_with_data;
/* A request's receive function that stores the bytes at the request's `arg`. */
int take_data(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size);

/* A request's done function that posts the semaphore at its `arg`. */
void tell(struct gpc_request *request);

int run_over_both(const struct CMUnitTest *tests, size_t count);

#endif /* CALL_FIXTURE_H */
