/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of device printf. The driver writes it to the standard output of the process, for all
 * kernels of a context together, when a thread synchronizes. The worker's standard output is
 * therefore a pipe that is read here, and only one session at a time, the owner, may have kernels
 * in flight that print: it receives the output. A printing launch of another session waits for the
 * owner's work and then becomes the owner; the former owner's next one waits after it.
 *
 * Ownership: the session; its executor frees session->print under the lock that protects the owner
 * and the receiver.
 * Threads: any, unless noted.
 */
#ifndef GPD_PRINT_H
#define GPD_PRINT_H

#include <cuda.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* Makes standard output the pipe; to be called before anything is printed in this process. Returns
 * 0 or a negative errno. */
int gpd_print_start(void);

/* Maximum time, in nanoseconds, that a launch waits for one other session's printing kernels. */
extern uint64_t gpd_print_limit_ns;

/* Executor only: enclose a launch of an image that prints. gpd_print_begin() may wait for other
 * sessions' printing kernels, up to a limit; output that cannot be attributed afterwards is
 * dropped, and both sessions are notified. Returns an error if this session ends while it waits;
 * gpd_print_end() is then not called. */
CUresult gpd_print_begin(struct gpd_session *session, const struct gpd_stream *stream);
void gpd_print_end(struct gpd_session *session, struct gpd_stream *stream);

/* Any thread, before a wait is answered: sends what the session's kernels have printed. Cheap for a
 * session that never launched a printing kernel. */
void gpd_print_flush(struct gpd_session *session);

/* Frees session->print at the session's end, when it has no work left. */
void gpd_print_destroy(struct gpd_session *session);

#endif /* GPD_PRINT_H */
