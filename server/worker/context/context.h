/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA contexts of a session, including green contexts. They exist only in the worker's tables: in
 * the driver, all contexts of a device, of all sessions, are the worker's primary context of that
 * device.
 *
 * Ownership: the session's handle table refers to the contexts, which the hooks in api/ create
 * (gpd_session_create_object(), session/session.h); gpd_context_free() frees one when the client
 * destroys it or at the session's end.
 * Threads: executor only.
 * Errors: only gpd_context_enter() reports them.
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
	struct gpd_handle handle; /* its ID in the handle table */
	int device;               /* the worker's number of the device (ordinal) */
	unsigned int flags;       /* flags of cuCtxCreate() */
	/* Legacy default (NULL) stream of the context, set by gpd_stream_create(). `legacy`,
	 * `joins` and `gate` are owned by the session's list of streams. */
	struct gpd_stream *legacy;
	/* Stream on which an event of the whole context (cuCtxRecordEvent) is recorded, ordered
	 * after all other streams; NULL before the first use. */
	struct gpd_stream *joins;
	/* Stream that waits for the events that the whole context waits for (cuCtxWaitEvent); new
	 * streams are ordered after it. NULL before the first use. */
	struct gpd_stream *gate;
	/* The context that a green context is a part of, borrowed; NULL: not a green context. */
	struct gpd_context *parent;
	/* Resources of a green context, a reference; NULL: it has all of the session's SMs. */
	struct gpd_green *green;
};

/* Resources of a green context, on one device: a part of the SMs of another green context or of the
 * session. Created by gpd_gpGreenMake() (api/green_context.c). Reference counted, because resources
 * that are split from these may outlive them. */
struct gpd_green {
	unsigned int refs; /* number of references, initially 1; executor only */
	/* Resources that these are a part of, a reference; NULL: the session's share. */
	struct gpd_green *source;
	struct gpd_split split; /* which SMs of the source (device/partition.h) */
	/* Their present partition (device/partition.h), a reference; NULL: none yet. */
	struct gpd_partition *partition;
};

/* Drops a reference; dropping the last reference frees the resources and drops their references to
 * `source` and `partition`. Accepts NULL. */
void gpd_green_unref(struct gpd_green *green);
/* Returns the partition that new streams on the device must use, with a new reference that the
 * caller drops with gpd_partition_unref(). green: resources of the stream's context, which is on
 * this device; NULL: not a green context. After a change of the session's share, makes a new
 * partition for `green` and stores it there; if memory for it is exhausted, returns the former one.
 * Returns NULL if the streams may use the whole device, or if there is no memory for the first
 * partition of `green`. Does not call the driver, except to destroy a former partition. */
struct gpd_partition *gpd_green_partition(struct gpd_session *session, struct gpd_green *green,
					  int device);

/* Returns the context with this ID, borrowed; NULL: there is none. */
struct gpd_context *gpd_context_get(const struct gpd_session *session, uint32_t id);

/* Returns the ordinal of the context's device; if there is no context with this ID, that of the
 * first device that the session may use. */
int gpd_context_device(const struct gpd_session *session, uint32_t id);

/* Makes the worker's primary context of the device of gpd_context_device() current in this thread.
 * Returns CUDA_SUCCESS, or the driver's error, and the
 * current device is unchanged. */
CUresult gpd_context_enter(const struct gpd_session *session, uint32_t id);

/* Removes the context's ID from the handle table, and frees the context with its reference to the
 * resources. The caller has destroyed the context's streams and its objects
 * (gpd_objects_destroy_context(), object.h): none may refer to it any more, except at the session's
 * end. */
void gpd_context_free(struct gpd_session *session, struct gpd_context *context);

#endif /* GPD_CONTEXT_H */
