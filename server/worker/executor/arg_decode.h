/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument decoding for generated calls: checks values from the wire and converts them into the
 * driver's own.
 *
 * Ownership: results are borrowed from the session and are valid during the current call.
 * Threads: the generated dispatcher, on the session's executor.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_INVALID_CONTEXT or
 * CUDA_ERROR_INVALID_HANDLE, if the client's value names no such object; or an error of the driver.
 * On failure the result is not set, unless noted.
 *
 * All values are from the client, unchecked.
 */
#ifndef GPD_ARG_DECODE_H
#define GPD_ARG_DECODE_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* Converts the ordinal of a device that the session may use, and makes the device current.
 * *device_p may be set although making it current failed. */
CUresult gpd_arg_decode_device(struct gpd_session *session, int32_t ordinal, CUdevice *device_p);
/* Converts a context ID into the driver's context, which is the primary one of its device. Does not
 * make it current. */
CUresult gpd_arg_decode_context(struct gpd_session *session, uint32_t id, CUcontext *context_p);
/* Converts a stream ID into the driver's stream. works: whether the call enqueues work; then
 * gpd_stream_begin() (stream/stream.h) orders and counts the operation, and its errors are
 * returned, too. */
CUresult gpd_arg_decode_stream(struct gpd_session *session, uint32_t id, bool works,
			       CUstream *stream_p);
/* Converts an event ID into the driver's event, valid until the client records it again or destroys
 * it. CUDA_ERROR_INVALID_HANDLE also for interprocess events. */
CUresult gpd_arg_decode_event(struct gpd_session *session, uint32_t id, CUevent *event_p);
/* Converts the ID of an object of this kind (context/object.h) into the driver's handle. */
CUresult gpd_arg_decode_object(struct gpd_session *session, enum gpd_kind kind, uint32_t id,
			       void **driver_p);

/* Returns the device's number on the wire, which is its ordinal (device/device.h); -1: it is not a
 * device of this worker. */
int32_t gpd_device_to_wire(CUdevice device);

/* Ends the session because the current record has inconsistent lengths. Returns
 * CUDA_ERROR_INVALID_VALUE, as the call's result. */
CUresult gpd_arg_decode_malformed(struct gpd_session *session);

#endif /* GPD_ARG_DECODE_H */
