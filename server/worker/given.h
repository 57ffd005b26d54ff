/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call that travels as it is gives the driver: the values of the wire, checked, as the
 * driver's own.  For the generated dispatcher, on the session's executor.
 */
#ifndef GPD_GIVEN_H
#define GPD_GIVEN_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* A device that the session may use; it becomes current. */
CUresult gpd_arg_decode_device(struct gpd_session *session, int32_t ordinal, CUdevice *device_p);
CUresult gpd_arg_decode_context(struct gpd_session *session, uint32_t id, CUcontext *context_p);
/* works: the call gives it work, which is ordered and counted. */
CUresult gpd_arg_decode_stream(struct gpd_session *session, uint32_t id, bool works,
			       CUstream *stream_p);
CUresult gpd_arg_decode_event(struct gpd_session *session, uint32_t id, CUevent *event_p);
CUresult gpd_arg_decode_object(struct gpd_session *session, enum gpd_kind kind, uint32_t id,
			       void **driver_p);

/* The ordinal of a device on the wire; -1: none. */
int32_t gpd_device_to_wire(CUdevice device);

/* Lengths that do not fit together: the session ends. */
CUresult gpd_arg_decode_malformed(struct gpd_session *session);

#endif /* GPD_GIVEN_H */
