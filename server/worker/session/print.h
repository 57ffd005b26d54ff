/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels print.  A driver writes it to the standard output of its process, for all kernels of
 * the context together, when somebody synchronises.  So the worker's standard output is a pipe that
 * is read here, and at any time only one session has kernels under way that may print: its owner,
 * who gets what comes.  Another session's printing launch waits for the owner's work, and takes
 * over; the owner's next one waits behind it.
 *
 * What a session has here its executor frees, under the lock under which others reach it as the
 * owner or as the one to receive.
 */
#ifndef GPD_PRINT_H
#define GPD_PRINT_H

#include <cuda.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* Before anything is printed in this process: its standard output becomes the pipe.  0, -errno. */
int gpd_print_start(void);

/* For how long a launch waits for one other session's printing kernels. */
extern uint64_t gpd_print_limit_ns;

/* Executor: around a launch of an image that prints.  gpd_print_begin() may wait for other
 * sessions' printing kernels, but not for ever: what then cannot be told apart is dropped, and the
 * sessions are told so.  An error if this session ends while it waits. */
CUresult gpd_print_begin(struct gpd_session *session, const struct gpd_stream *stream);
void gpd_print_end(struct gpd_session *session, struct gpd_stream *stream);

/* Any thread, before a wait is answered: sends what the session's kernels have printed.  Costs
 * nothing to a session that never launched a kernel that prints. */
void gpd_print_flush(struct gpd_session *session);

/* At the session's end, when nothing of it runs any more. */
void gpd_print_destroy(struct gpd_session *session);

#endif /* GPD_PRINT_H */
