/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Real worker on the software device, in a thread of this process, for fuzzers: one session per
 * input, whose lanes the fuzzer writes to. A lane is a connection of a session: lane 0 carries
 * calls, the others carry the bytes of copies.
 *
 * The worker's replies are read and discarded. Kernel launches are not performed, because a kernel
 * may legitimately end the worker.
 * Ownership: the caller owns the struct; fuzz_session_open() opens the lanes and
 * fuzz_session_close() closes them.
 * Threads: one thread uses these functions.
 * Errors: a worker that hangs (60 s without progress) or ends aborts the process, which the fuzzer
 * reports as a finding.
 */
#ifndef FUZZ_SESSION_H
#define FUZZ_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of lanes of a session. */
#define FUZZ_LANES 3
/* Address and size of the session's window, the address range of its device memory. It is the same
 * for every session, so that the addresses in inputs are valid. */
#define FUZZ_WINDOW_FIRST UINT64_C(0x110000000000)
#define FUZZ_WINDOW_SIZE ((uint64_t)1 << 30)

struct fuzz_session {
	int lanes[FUZZ_LANES]; /* sockets of the lanes */
	unsigned int count;    /* number of lanes */
	unsigned int broken;   /* bit i: lane i is closed by the worker or accepts no more bytes */
};

/* Opens a session with 1 to FUZZ_LANES lanes, and waits until the worker has opened it. The first
 * call starts the worker. */
void fuzz_session_open(struct fuzz_session *session, unsigned int lanes);
/* Sends all bytes on a lane, and waits while the worker does not read. Returns whether the lane is
 * still open; a data lane that accepts no bytes for 300 ms counts as closed. */
bool fuzz_session_send(struct fuzz_session *session, unsigned int lane, const void *bytes,
		       size_t size);
/* Closes the lanes and waits until the worker has closed the session. */
void fuzz_session_close(struct fuzz_session *session);

#endif /* FUZZ_SESSION_H */
