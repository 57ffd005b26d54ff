/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last things that went wrong, for cuLogsDumpToMemory() and its like: whatever GPUPOOL_LOG
 * says, in the words that it would print, each with its time and thread as the driver writes them.
 * Any thread, at any time.
 */
#ifndef GPC_LOG_KEPT_H
#define GPC_LOG_KEPT_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is kept at most, as much as the driver keeps. */
#define GPC_LOG_HISTORY_MAX 100u
#define GPC_LOG_LINE_MAX 256u

/* Keeps it, and tells those who want to know; a line that is too long is cut. */
void gpc_log_history_add(const char *line);

/* How many there ever were: the number that the next one gets. */
uint32_t gpc_log_history_next(void);

/* Whether this thread is inside a function of the program that the library calls: other CUDA calls
 * are not permitted there. */
extern __thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

/*
 * Lines from number `from` on, each with its newline, and a NUL; the last ones, if there is not
 * room for all, behind a line that says so.  *size is the room, and what was written without the
 * NUL; *next_p the number after the last one.  -ENOSPC: there is no room for one.
 */
int gpc_log_history_dump(uint32_t from, char *buffer, size_t *size, uint32_t *next_p);

/* Calls function(data, ...) with each line from now on, as a host function, in the thread that it
 * is about, which may hold locks of the library.  NULL: there are too many. */
void *gpc_log_add_listener(CUlogsCallback function, void *data);
/* -ENOENT: it is none.  A thread that is just being told may still be in the function. */
int gpc_log_remove_listener(const void *listener);

#endif /* GPC_LOG_KEPT_H */
