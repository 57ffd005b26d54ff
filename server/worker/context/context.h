/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA contexts of a session. They exist only as names: all contexts of a device, of all sessions,
 * are the worker's primary context of that device.
 *
 * Ownership: the session, through its handle table.
 * Threads: executor only.
 * Errors: CUresult or NULL.
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
	int device; /* the worker's device number */
	unsigned int flags;
	struct gpd_stream *legacy; /* its NULL stream */
	struct gpd_stream *joins; /* ordered after all others, for an event; created on first use */
	struct gpd_stream *gate;  /* ordered after awaited events; created on first use */
	struct gpd_context *parent; /* of a green context: the context it is a part of; else NULL */
	struct gpd_green *green;    /* a reference; NULL: it has all of the session's SMs */
};

/* Resources of a program's green context: a part of those of another one, or of the session.
 * Reference counted, because others that are derived from it may outlive it. */
struct gpd_green {
	unsigned int refs;
	struct gpd_green *source; /* a reference; NULL: the session's share */
	struct gpd_split split;
	struct gpd_partition
		*partition; /* a reference, a part of the source's present partition; or NULL */
};

/* Drops a reference. Accepts NULL. */
void gpd_green_unref(struct gpd_green *green);
/* Returns the partition for new streams of the green context (NULL: of no green context) on the
 * device, with a new reference; NULL: the whole device. */
struct gpd_partition *gpd_green_partition(struct gpd_session *session, struct gpd_green *green,
					  int device);

/* Returns NULL if there is no such context. */
struct gpd_context *gpd_context_get(const struct gpd_session *session, uint32_t id);

/* Returns the context's device; 0 if there is no such context. */
int gpd_context_device(const struct gpd_session *session, uint32_t id);

/* Makes the context's device current in this thread; device 0 if there is no such context. */
CUresult gpd_context_enter(const struct gpd_session *session, uint32_t id);

/* Removes its name and frees it; it must have no streams left. */
void gpd_context_free(struct gpd_session *session, struct gpd_context *context);

#endif /* GPD_CONTEXT_H */
