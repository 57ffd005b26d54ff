/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker on the software device in this process, the real one, and a session of it for each
 * input, whose lanes the caller writes to.  What the worker says is read and forgotten; one that
 * does not go on, or is lost, ends the process as a finding does.  Launches are not carried out:
 * kernels may do what they like, and end the worker.  One thread.
 */
#ifndef FUZZ_SESSION_H
#define FUZZ_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_LANES 3
/* Every session has the first window, which the addresses in the inputs are of. */
#define FUZZ_WINDOW_FIRST UINT64_C(0x110000000000)
#define FUZZ_WINDOW_SIZE ((uint64_t)1 << 30)

struct fuzz_session {
	int lanes[FUZZ_LANES];
	unsigned int count;
	unsigned int broken; /* bit for each lane that is closed, or takes no more */
};

/* With so many lanes, at most FUZZ_LANES. */
void fuzz_session_open(struct fuzz_session *session, unsigned int lanes);
/* Whether the lane still stands. */
bool fuzz_session_send(struct fuzz_session *session, unsigned int lane, const void *bytes,
		       size_t size);
/* Waits for the worker to end it. */
void fuzz_session_close(struct fuzz_session *session);

#endif /* FUZZ_SESSION_H */
