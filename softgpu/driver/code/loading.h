/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulation of implicit synchronization on code loading.
 *
 * NVIDIA's driver loads code when a kernel is first used. When it loads or unloads code or destroys
 * an array, it waits until no kernel runs; during this time no kernel starts, and launch calls do
 * not return. The software device does the same if the environment variable
 * GPUPOOL_SOFT_LOADING_WAITS is set; otherwise the functions do nothing and return immediately.
 * Threads: any.
 */
#ifndef GS_LOADING_H
#define GS_LOADING_H

#include <stdbool.h>

struct gs_stream;

/* Called when code is loaded or unloaded. Waits, without a limit, until no kernel runs. */
void gs_loading_wait(void);

/* Called by launches. Waits, without a limit, until no thread is in gs_loading_wait(). */
void gs_loading_pass(void);

/* gs_loading_begin() and gs_loading_end() enclose the execution of a kernel. gs_loading_begin()
 * waits while a thread is in gs_loading_wait(). It returns true when the kernel may start, or false
 * if the stream was stopped first; gs_loading_end() must not be called then. */
bool gs_loading_begin(const struct gs_stream *stream);
void gs_loading_end(void);

#endif /* GS_LOADING_H */
