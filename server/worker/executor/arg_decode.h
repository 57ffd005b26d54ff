/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument decoding for generated calls: checks values from the wire and converts them into the
 * driver's own.
 *
 * Threads: the generated dispatcher, on the session's executor.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_CONTEXT or
 * CUDA_ERROR_INVALID_HANDLE.
 */
#ifndef GPD_ARG_DECODE_H
#define GPD_ARG_DECODE_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* A device that the session may use; makes it current. */
CUresult gpd_arg_decode_device(struct gpd_session *session, int32_t ordinal, CUdevice *device_p);
/* The driver's context of a context name: the device's primary one. */
CUresult gpd_arg_decode_context(struct gpd_session *session, uint32_t id, CUcontext *context_p);
/* works: the call adds work to the stream, which is ordered and counted. */
CUresult gpd_arg_decode_stream(struct gpd_session *session, uint32_t id, bool works,
			       CUstream *stream_p);
/* The driver's event; not for interprocess events. */
CUresult gpd_arg_decode_event(struct gpd_session *session, uint32_t id, CUevent *event_p);
/* The driver's handle of an object (session/object.h). */
CUresult gpd_arg_decode_object(struct gpd_session *session, enum gpd_kind kind, uint32_t id,
			       void **driver_p);

/* Returns the device's number on the wire; -1: none. */
int32_t gpd_device_to_wire(CUdevice device);

/* The record has inconsistent lengths: ends the session. */
CUresult gpd_arg_decode_malformed(struct gpd_session *session);

#endif /* GPD_ARG_DECODE_H */
