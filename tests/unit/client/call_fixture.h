/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of the client's calls: a session with a scripted daemon (fake_daemon.h),
 * functions that send calls, and a runner that executes all tests over tcp and again over a UNIX
 * socket pair.
 *
 * Ownership: begin() creates the daemon and the session in the test's fixture, end() frees them.
 * run_over_both() owns the fixtures.
 * Threads: `answer` functions run in the daemon's thread, the others in the test's threads.
 */
#ifndef CALL_FIXTURE_H
#define CALL_FIXTURE_H

#include "gpc_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

typedef int fake_daemon_answer_function(struct fake_daemon *daemon, const struct gp_header *header,
					const void *fields, size_t size);

/* The state of a test. `scheme` is that of the connection. */
struct fixture {
	const char *scheme;
	struct fake_daemon daemon;
	struct gpc_session *session;
};

/* Starts the daemon with the function `answer` and a session that may have at most
 * max_outstanding calls without a reply. Returns the test's fixture, for end(). */
struct fixture *begin_limited(void **state, unsigned int max_outstanding,
			      fake_daemon_answer_function *answer);
/* Like begin_limited(), with a limit that tests do not reach. */
struct fixture *begin(void **state, fake_daemon_answer_function *answer);
/* Stops the daemon and frees the session. */
void end(struct fixture *fixture);

/* Posts a fill of memory at dst, a call without a reply. Returns its result, as the following
 * functions do. */
CUresult post(uint64_t dst);
/* Queries the memory of a device and waits for the reply. */
CUresult ask(int device, struct gp_reply_gpMemoryInfo *reply);
/* Waits until the daemon has received everything that was posted. */
CUresult fence(void);
/* Posts a copy of `size` bytes to the device. */
CUresult copy_in(const void *data, size_t size);
/* Thread function: calls fence() and stores the result in the CUresult that `arg` points to.
 * Returns NULL. */
void *fence_in_thread(void *arg);

/* `answer` functions: refuse_memory_info() replies to gpMemoryInfo with CUDA_ERROR_INVALID_DEVICE;
 * answer_when_told() replies after the test has posted daemon.proceed, once per record. */
fake_daemon_answer_function refuse_memory_info, answer_when_told;

/* An `answer` function that replies to gpCopyOut with DATA_SIZE bytes, of which byte i is 7 * i
 * modulo 256. */
#define DATA_SIZE 100000
fake_daemon_answer_function answer_with_data;
/* A receive function of a request: stores `size` bytes at `offset` in the buffer of DATA_SIZE bytes
 * at request->arg. Returns 0, or a negative error. */
int take_data(struct gpc_request *request, struct gp_conn *conn, uint64_t offset, uint64_t size);

/* A done function of a request: posts the semaphore at request->arg. */
void tell(struct gpc_request *request);

/* Runs the tests over tcp and again over a UNIX socket pair. Returns the number that failed. */
int run_over_both(const struct CMUnitTest *tests, size_t count);

#endif /* CALL_FIXTURE_H */
