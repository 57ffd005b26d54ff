/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error history: the last errors of the library, for cuLogsDumpToMemory() and related functions.
 * log.c adds them, independently of GPUPOOL_LOG. A line is the text that is printed, after time and
 * thread in the format of NVIDIA's driver. Lines are numbered from 0 in the order in which they are
 * stored.
 *
 * Ownership: the history is static and lives as long as the process.
 * Threads: any thread, at any time; the history has its own lock, which is not held while a
 * listener runs.
 */
#ifndef GPC_LOG_HISTORY_H
#define GPC_LOG_HISTORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of lines, as in NVIDIA's driver. */
#define GPC_LOG_HISTORY_MAX 100u
/* Maximum size of a line in bytes, with its newline and a NUL, as in NVIDIA's driver. */
#define GPC_LOG_LINE_MAX 256u

/* Stores a copy of the line, preceded by time and thread, and calls the listeners on this thread. A
 * line that is too long is truncated. If the history is full, the oldest line is replaced. If a
 * listener or host function causes the call, the line is stored and no listener is called. */
void gpc_log_history_add(const char *line);

/* Returns the number that the next line will have: the number of lines ever stored. */
uint32_t gpc_log_history_next(void);

/* True while this thread runs a callback of the program that the library has called (a host
 * function or a listener), in which other CUDA calls are not permitted. Set and cleared by the
 * library around the callback. */
extern __thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

/*
 * Writes the lines from number `from` on, each with a newline, and a final NUL. If some are no
 * longer stored, or not all of them fit, writes the last lines that fit, after a line that reports
 * the omission. Writes no line if `from` is at least gpc_log_history_next(). On entry *size is the
 * size of the buffer in bytes. Returns 0, with *size set to the number of bytes written without the
 * NUL, and *next_p to the number after the last line.
 * Errors: -ENOSPC: the buffer is too small for the last line (after the report, if lines are
 * omitted); *size is then 0, and the buffer and *next_p are unchanged.
 */
int gpc_log_history_dump(uint32_t from, char *buffer, size_t *size, uint32_t *next_p);

/* Registers a listener: each later line is passed to function(data, CU_LOG_LEVEL_ERROR, line,
 * length) on the thread that caused the error. The line is NUL-terminated, without a newline, and
 * valid during the call. That thread may hold locks of the library, so the function must not call
 * CUDA. data must stay valid for as long as the function can run, even after its removal. Returns
 * an identifier for gpc_log_remove_listener(), which needs no freeing, or NULL if 16 listeners are
 * registered. */
void *gpc_log_add_listener(CUlogsCallback function, void *data);
/* Unregisters a listener. Returns 0, or -ENOENT if it is not registered. Does not wait: the
 * function may still be running in another thread when this returns. */
int gpc_log_remove_listener(const void *listener);

#endif /* GPC_LOG_HISTORY_H */
