/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of a session.  They are names only: all of a device's contexts, of all sessions, are the
 * worker's primary context of that device.  A context belongs to its session's handle table; the
 * executor makes, uses and destroys it.
 */
#ifndef GPD_CONTEXT_H
#define GPD_CONTEXT_H

#include "server/worker/device/partition.h"
#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>

struct gpd_session;
struct gpd_stream;

struct gpd_context {
	struct gpd_handle handle;
	int device; /* the worker's ordinal */
	unsigned int flags;
	struct gpd_stream *legacy;  /* its NULL stream */
	struct gpd_stream *joins;   /* behind all others, for an event; made on first need */
	struct gpd_stream *gate;    /* behind all that it waits for; made on first need */
	struct gpd_context *parent; /* of a green context, which is a part of that; else NULL */
	struct gpd_green *green;    /* a reference; NULL: it has what the session has */
};

/* What a program's green context has: some of what another one has, or the session.  Counted, as
 * others may be made of it that outlive it. */
struct gpd_green {
	unsigned int refs;
	struct gpd_green *source; /* a reference; NULL: the session's share */
	struct gpd_split split;
	struct gpd_partition
		*partition; /* a reference, made of the source's present one; or NULL */
};

void gpd_green_unref(struct gpd_green *green);
/* The partition of streams of the device that are made in it (NULL: in no green context), now: a
 * new reference, or NULL: the whole device. */
struct gpd_partition *gpd_green_partition(struct gpd_session *session, struct gpd_green *green,
					  int device);

/* NULL: no such context. */
struct gpd_context *gpd_context_get(const struct gpd_session *session, uint32_t id);

/* Its device; of an unknown one device 0. */
int gpd_context_device(const struct gpd_session *session, uint32_t id);

/* Makes the context's device current in this thread; of an unknown one device 0. */
CUresult gpd_context_enter(const struct gpd_session *session, uint32_t id);

/* Forgets its name and frees it; no stream is of it any more. */
void gpd_context_free(struct gpd_session *session, struct gpd_context *context);

#endif /* GPD_CONTEXT_H */
