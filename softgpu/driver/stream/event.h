/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: objects that store the mark (position in a stream's work, stream.h) at which they were
 * last recorded, and the time at which the stream reached it.
 *
 * Threads: any.
 * Errors: CUDA_SUCCESS; CUDA_ERROR_INVALID_HANDLE for an unknown event; CUDA_ERROR_OUT_OF_MEMORY.
 */
#ifndef GS_EVENT_H
#define GS_EVENT_H

#include "softgpu/driver/driver.h"

struct gs_stream;

/* Destroys all events when the context ends. */
void gs_event_destroy_all(void);

/* Enqueues the recording of the event on the stream. Does not wait. */
CUresult gs_event_record(CUevent handle, struct gs_stream *stream);
/* Makes the stream's later operations wait until the event's last recording before this call is
 * complete. The calling thread does not wait. */
CUresult gs_event_wait(CUevent handle, struct gs_stream *stream);

#endif /* GS_EVENT_H */
