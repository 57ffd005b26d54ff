/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: first-in-first-out queues of operations, each executed by a thread of its own that is
 * started when there is work and leaves after a while without. An operation first waits for marks
 * on other streams; marks always point to what was submitted earlier, so waiting cannot deadlock.
 * A cancelled stream, and every stream after a kernel's failure, drops its operations unrun.
 */
#ifndef GS_STREAM_H
#define GS_STREAM_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

#define GS_PRIORITY_LEAST 0
#define GS_PRIORITY_GREATEST (-5)

struct gs_stream;
struct gs_green;

/* A point in a stream's work; holds a reference to the stream. */
struct gs_mark {
	struct gs_stream *stream;
	uint64_t seq;
};

/* Embedded in what a call queues. */
struct gs_op {
	struct gs_op *next;
	uint64_t seq;
	struct gs_mark *waits;
	unsigned int wait_count;
	bool always; /* run even when the stream's work is dropped */
	void (*run)(struct gs_op *op, struct gs_stream *stream);
	void (*release)(struct gs_op *op);
};

/*
 * NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, or a live handle; a new reference. NULL: there is
 * none, and gs_stream_missing() says with which error.
 */
struct gs_stream *gs_stream_get(CUstream handle);
CUresult gs_stream_missing(CUstream handle);
bool gs_stream_is_special(CUstream handle);
void gs_stream_put(struct gs_stream *stream);

/* Takes the operation over, also when it fails. seq_p may be NULL. */
CUresult gs_stream_submit(struct gs_stream *stream, struct gs_op *op, uint64_t *seq_p);

/* Also fails when a kernel has failed meanwhile. */
CUresult gs_stream_wait(struct gs_stream *stream, uint64_t seq);
bool gs_stream_reached(struct gs_stream *stream, uint64_t seq);
/* All streams of a device (-1: of all devices), or those of a green context. */
CUresult gs_stream_synchronize_all(const struct gs_green *green, int device);

/* CUDA_ERROR_NOT_READY, unless it waits. What concerns the legacy stream is what its next operation
 * would wait for. */
CUresult gs_stream_check(struct gs_stream *stream, bool wait);
/* Drops its work and returns when nothing of it runs any more. */
CUresult gs_stream_cancel(struct gs_stream *stream);
unsigned int gs_stream_flags(const struct gs_stream *stream);
int gs_stream_priority(const struct gs_stream *stream);

/* Nonzero when what runs on the stream must stop. */
bool gs_stream_stopped(const struct gs_stream *stream);
const volatile int *gs_stream_cancel_flag(const struct gs_stream *stream);
void gs_stream_stop_all(void);

void gs_stream_destroy_all(void);

/* The green context that it belongs to; NULL: none. The stream keeps it. */
struct gs_green *gs_stream_green(const struct gs_stream *stream);

int gs_stream_device(const struct gs_stream *stream);

/* A stream of a device, or of a green context of it (NULL: none), without a handle; it ends with
 * gs_stream_close(). */
struct gs_stream *gs_stream_create(struct gs_green *green, int device, unsigned int flags,
				   int priority);
/* What is queued is still done. */
void gs_stream_close(struct gs_stream *stream);
/* Gives it its handle. */
void gs_stream_publish(struct gs_stream *stream, CUstream *handle);

/* Puts the next operation of a stream behind all that the green context's streams were given, or
 * (NULL) those of its device. */
CUresult gs_stream_join(struct gs_stream *stream, const struct gs_green *green);
/* Puts it behind all that `other` was given. */
CUresult gs_stream_follow(struct gs_stream *stream, struct gs_stream *other);
/* Calls visit() for every stream of the green context until one fails. */
CUresult gs_stream_each(const struct gs_green *green,
			CUresult (*visit)(struct gs_stream *stream, void *arg), void *arg);

#endif /* GS_STREAM_H */
