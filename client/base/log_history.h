/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error history: the last errors of the library, for cuLogsDumpToMemory() and related functions.
 * Stores them independently of GPUPOOL_LOG, in the words that would be printed, each with time and
 * thread in the format of NVIDIA's driver. Lines are numbered from 0 in the order in which they
 * were stored.
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
/* Maximum size of a line in bytes, as in NVIDIA's driver. */
#define GPC_LOG_LINE_MAX 256u

/* Stores a copy of the line, truncated if it is too long, replaces the oldest one if the history is
 * full, and calls the listeners. If called by a listener or host function, the line is stored and
 * no listener is called. */
void gpc_log_history_add(const char *line);

/* Returns the number of lines ever stored, which is the number that the next line will have. */
uint32_t gpc_log_history_next(void);

/* True while this thread runs a callback of the program that the library has called (a host
 * function or a listener), in which other CUDA calls are not permitted. Set and cleared by the
 * library around the callback. */
extern __thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

/*
 * Writes the lines from number `from` on, each with a newline, and a final NUL. If not all of them
 * fit or are still stored, writes the last ones after a line that reports the omission. On entry
 * *size is the size of the buffer in bytes. Returns 0, with *size set to the number of bytes
 * written without the NUL, and *next_p to the number after the last line.
 * Errors: -ENOSPC: the buffer is too small for one line; *size is 0 and *next_p unchanged.
 */
int gpc_log_history_dump(uint32_t from, char *buffer, size_t *size, uint32_t *next_p);

/* Registers a listener: each later line is passed to function(data, ...) in the thread that caused
 * the error, which may hold locks of the library. The function is subject to the rules of host
 * functions: it must not call CUDA. data must stay valid for as long as the function can run.
 * Returns an identifier for gpc_log_remove_listener(), which needs no freeing, or NULL if 16
 * listeners are registered. */
void *gpc_log_add_listener(CUlogsCallback function, void *data);
/* Unregisters a listener. Returns 0, or -ENOENT if it is not registered. Does not wait: the
 * function may still be running in another thread when this returns. */
int gpc_log_remove_listener(const void *listener);

#endif /* GPC_LOG_HISTORY_H */
