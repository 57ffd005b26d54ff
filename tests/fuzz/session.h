/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real worker on the software device in this process, for fuzzers: one session per input, whose
 * lanes the fuzzer writes to.
 *
 * Replies of the worker are read and discarded. Kernel launches are not carried out, because a
 * kernel may legitimately end the worker.
 * Threads: one thread uses these functions.
 * Errors: a worker that hangs or dies ends the process, which the fuzzer reports as a finding.
 */
#ifndef FUZZ_SESSION_H
#define FUZZ_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_LANES 3
/* Every session gets the first window, so that the addresses in inputs are valid. */
#define FUZZ_WINDOW_FIRST UINT64_C(0x110000000000)
#define FUZZ_WINDOW_SIZE ((uint64_t)1 << 30)

struct fuzz_session {
	int lanes[FUZZ_LANES];
	unsigned int count;
	unsigned int broken; /* one bit for each lane that is closed or accepts no more bytes */
};

/* Opens a session with `lanes` lanes, at most FUZZ_LANES. */
void fuzz_session_open(struct fuzz_session *session, unsigned int lanes);
/* Sends bytes. Returns whether the lane is still open. */
bool fuzz_session_send(struct fuzz_session *session, unsigned int lane, const void *bytes,
		       size_t size);
/* Closes the lanes and waits until the worker has ended the session. */
void fuzz_session_close(struct fuzz_session *session);

#endif /* FUZZ_SESSION_H */
