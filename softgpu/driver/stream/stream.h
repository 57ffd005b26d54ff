/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: FIFO queues of operations, each executed by a thread of its own that is started when
 * there is work and exits after a period without. An operation first waits for marks on other
 * streams; marks always refer to earlier submissions, so waiting cannot deadlock. A cancelled
 * stream, and every stream after a kernel's failure, drops its operations without running them.
 *
 * Ownership: reference counted.
 * Threads: any.
 */
#ifndef GS_STREAM_H
#define GS_STREAM_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

#define GS_PRIORITY_LEAST 0
#define GS_PRIORITY_GREATEST (-5)

struct gs_stream;
struct gs_green;

/* A position in a stream's work; holds a reference to the stream. */
struct gs_mark {
	struct gs_stream *stream;
	uint64_t seq;
};

/* A queued operation; embedded in a struct of the call. */
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
 * Returns a new reference to the stream of NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a live
 * handle. NULL: unknown handle; gs_stream_missing() returns the error.
 */
struct gs_stream *gs_stream_get(CUstream handle);
CUresult gs_stream_missing(CUstream handle);
bool gs_stream_is_special(CUstream handle);
void gs_stream_put(struct gs_stream *stream);

/* Submits an operation and takes ownership of it, even on failure. seq_p may be NULL. */
CUresult gs_stream_submit(struct gs_stream *stream, struct gs_op *op, uint64_t *seq_p);

/* Waits for an operation; also fails when a kernel has failed meanwhile. */
CUresult gs_stream_wait(struct gs_stream *stream, uint64_t seq);
bool gs_stream_reached(struct gs_stream *stream, uint64_t seq);
/* Waits for all streams of a device (-1: of all devices), or those of a green context. */
CUresult gs_stream_synchronize_all(const struct gs_green *green, int device);

/* Returns CUDA_ERROR_NOT_READY if work is pending, or waits for it. For the legacy stream this
 * includes work that its next operation would wait for. */
CUresult gs_stream_check(struct gs_stream *stream, bool wait);
/* Drops the stream's work and waits until none of it runs. */
CUresult gs_stream_cancel(struct gs_stream *stream);
unsigned int gs_stream_flags(const struct gs_stream *stream);
int gs_stream_priority(const struct gs_stream *stream);

/* Nonzero when the running operation must stop. */
bool gs_stream_stopped(const struct gs_stream *stream);
const volatile int *gs_stream_cancel_flag(const struct gs_stream *stream);
void gs_stream_stop_all(void);

void gs_stream_destroy_all(void);

/* Returns the green context of the stream, which the stream keeps alive; NULL: none. */
struct gs_green *gs_stream_green(const struct gs_stream *stream);

int gs_stream_device(const struct gs_stream *stream);

/* Creates a stream of a device, or of a green context of it (NULL: none), without a handle; ended
 * with gs_stream_close(). */
struct gs_stream *gs_stream_create(struct gs_green *green, int device, unsigned int flags,
				   int priority);
/* Closes the stream; queued work is still executed. */
void gs_stream_close(struct gs_stream *stream);
/* Assigns a handle. */
void gs_stream_publish(struct gs_stream *stream, CUstream *handle);

/* Orders the stream's next operation after all work submitted to the green context's streams, or
 * (NULL) to those of its device. */
CUresult gs_stream_join(struct gs_stream *stream, const struct gs_green *green);
/* Orders the stream's next operation after all work submitted to `other`. */
CUresult gs_stream_follow(struct gs_stream *stream, struct gs_stream *other);
/* Calls visit() for every stream of the green context until a call fails. */
CUresult gs_stream_each(const struct gs_green *green,
			CUresult (*visit)(struct gs_stream *stream, void *arg), void *arg);

#endif /* GS_STREAM_H */
