/* SPDX-License-Identifier: Apache-2.0 */
/* Events: the most recently recorded mark, with the time at which its stream reached it. */
#ifndef GS_EVENT_H
#define GS_EVENT_H

#include "softgpu/driver/driver.h"

struct gs_stream;

void gs_event_destroy_all(void);

/* CUDA_ERROR_INVALID_HANDLE: unknown event. */
CUresult gs_event_record(CUevent handle, struct gs_stream *stream);
CUresult gs_event_wait(CUevent handle, struct gs_stream *stream);

#endif /* GS_EVENT_H */
