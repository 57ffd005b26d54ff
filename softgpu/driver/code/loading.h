/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware's driver loads code when a kernel is first asked for, and then, as when it unloads code
 * or destroys an array, waits until no kernel runs; meanwhile none begins, and launches do not
 * return. With GPUPOOL_SOFT_LOADING_WAITS set this one does the same. Any thread.
 */
#ifndef GS_LOADING_H
#define GS_LOADING_H

#include <stdbool.h>

struct gs_stream;

/* A call that loads or unloads: returns when no kernel has run. */
void gs_loading_wait(void);

/* A call that launches: returns when nobody loads. */
void gs_loading_pass(void);

/* Around a kernel. false: the stream was stopped before it could begin. */
bool gs_loading_begin(const struct gs_stream *stream);
void gs_loading_end(void);

#endif /* GS_LOADING_H */
