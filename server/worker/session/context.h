/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of a session.  They are names only: all of a device's contexts, of all sessions, are the
 * worker's primary context of that device.  A context belongs to its session's handle table; the
 * executor makes, uses and destroys it.
 */
#ifndef GPD_CONTEXT_H
#define GPD_CONTEXT_H

#include "server/worker/session/handle.h"

#include <cuda.h>

struct gpd_session;
struct gpd_stream;

struct gpd_context {
	struct gpd_handle handle;
	int device; /* the worker's ordinal */
	unsigned int flags;
	struct gpd_stream *legacy; /* its NULL stream */
};

/* NULL: no such context. */
struct gpd_context *gpd_context_get(const struct gpd_session *session, uint32_t id);

/* Makes the context's device current in this thread; of an unknown one device 0. */
CUresult gpd_context_enter(const struct gpd_session *session, uint32_t id);

#endif /* GPD_CONTEXT_H */
