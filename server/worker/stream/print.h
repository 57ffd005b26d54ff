/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of device printf, sent to the client of the kernel that printed it.
 *
 * The driver writes the output to the standard output of the process, for all kernels of a context
 * together, when a thread synchronizes. The worker's standard output is therefore a pipe that this
 * module reads. Only one session at a time, the owner, may have printing kernels in flight, and it
 * receives all output. Another session whose launch prints waits until the owner's kernels are done
 * and then becomes the owner; waiting sessions take turns in order of arrival, but those of a
 * tenant whose kernels print for longer than others have waited for them follow the others. Output
 * is stored until gpd_print_flush(), at most 16 MiB per session, charged to the session's host
 * memory; output beyond the limits is dropped.
 *
 * Ownership: session->print, created on first use, belongs to the session and is freed by
 * gpd_print_destroy().
 * Threads: any, unless noted. The module has locks of its own.
 */
#ifndef GPD_PRINT_H
#define GPD_PRINT_H

#include <cuda.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* Replaces the process's standard output by the pipe and starts a thread that reads it. Called by
 * the main thread, once, before anything is printed in this process; a second call does nothing.
 * Returns 0; or a negative errno if there is no pipe or thread, and the worker cannot start.
 * Without it, output is not captured. */
int gpd_print_start(void);

/* Maximum time, in nanoseconds, that a launch waits for the printing kernels of other sessions,
 * however many there are. Constant in the worker; tests may write it while no launch is in
 * progress. */
extern uint64_t gpd_print_limit_ns;

/*
 * Called before a launch of a kernel that may print, after gpd_stream_begin() (stream.h). Makes the
 * stream's device current and waits until no other session has printing kernels in flight, at most
 * gpd_print_limit_ns. If the limit is reached, output that cannot be attributed is dropped, and
 * each of the two clients gets one message for its standard error, at the next gpd_print_flush() of
 * its session.
 *
 * Returns CUDA_SUCCESS, also if output is not captured; CUDA_ERROR_OUT_OF_MEMORY;
 * CUDA_ERROR_NOT_PERMITTED if the session is ending or its context is lost; or the error of making
 * the device current. On failure the kernel must not be launched and gpd_print_end() must not be
 * called. Executor only.
 */
CUresult gpd_print_begin(struct gpd_session *session, const struct gpd_stream *stream);
/* Ends what a successful gpd_print_begin() has begun for the same stream, whose device must still
 * be current. To be called after the launch, even if the launch failed. Executor only. */
void gpd_print_end(struct gpd_session *session, struct gpd_stream *stream);

/* Sends what the session's kernels have printed so far to the client. Blocks while the client does
 * not read, and in the driver, which writes the output of kernels that are done. May change the
 * current device. To be called before the reply that reports kernels as done. Does nothing for a
 * session that never launched a printing kernel. */
void gpd_print_flush(struct gpd_session *session);

/* Sends the remaining output and frees session->print at the session's end, when it has no work
 * left. Does nothing if it is NULL. Executor only. */
void gpd_print_destroy(struct gpd_session *session);

#endif /* GPD_PRINT_H */
