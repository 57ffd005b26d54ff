/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error history: the last errors of the library, for cuLogsDumpToMemory() and related functions.
 * Stores them independently of GPUPOOL_LOG, in the words that would be printed, each with time and
 * thread in the format of NVIDIA's driver.
 *
 * Threads: any thread, at any time.
 */
#ifndef GPC_LOG_HISTORY_H
#define GPC_LOG_HISTORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of lines and maximum size of a line, as in NVIDIA's driver. */
#define GPC_LOG_HISTORY_MAX 100u
#define GPC_LOG_LINE_MAX 256u

/* Stores a line, truncated if it is too long, and calls the listeners. */
void gpc_log_history_add(const char *line);

/* Returns the number of lines ever stored, which is the number of the next one. */
uint32_t gpc_log_history_next(void);

/* Whether this thread is in a callback of the program that the library has called (a host
 * function), in which other CUDA calls are not permitted. */
extern __thread bool gpc_in_host_function __attribute__((tls_model("initial-exec")));

/*
 * Writes the lines from number `from` on, each with a newline, and a final NUL. If not all of them
 * fit, writes the last ones after a line that reports the omission. On entry *size is the size of
 * the buffer, on return the number of bytes written without the NUL; *next_p is the number after
 * the last line.
 * Errors: -ENOSPC: the buffer is too small for a line.
 */
int gpc_log_history_dump(uint32_t from, char *buffer, size_t *size, uint32_t *next_p);

/* Registers a listener: each later line is passed to function(data, ...) as in a host function, in
 * the thread that caused the error, which may hold locks of the library. Returns NULL if there are
 * too many listeners. */
void *gpc_log_add_listener(CUlogsCallback function, void *data);
/* Unregisters a listener. Returns -ENOENT if it is not registered. The function may still be
 * running in another thread when this returns. */
int gpc_log_remove_listener(const void *listener);

#endif /* GPC_LOG_HISTORY_H */
