/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulation of implicit synchronization on code loading. NVIDIA's driver loads code when a kernel
 * is first used; then, and when it unloads code or destroys an array, it waits until no kernel
 * runs. Meanwhile no kernel starts, and launch calls do not return. This library does the same if
 * GPUPOOL_SOFT_LOADING_WAITS is set; otherwise the functions do nothing.
 *
 * Threads: any.
 */
#ifndef GS_LOADING_H
#define GS_LOADING_H

#include <stdbool.h>

struct gs_stream;

/* Called when code is loaded or unloaded: returns when no kernel runs. */
void gs_loading_wait(void);

/* Called by launches: returns when no code is being loaded. */
void gs_loading_pass(void);

/* Enclose the execution of a kernel. gs_loading_begin() returns false if the stream was stopped
 * before the kernel could start. */
bool gs_loading_begin(const struct gs_stream *stream);
void gs_loading_end(void);

#endif /* GS_LOADING_H */
