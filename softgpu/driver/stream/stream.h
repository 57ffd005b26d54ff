/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: FIFO queues of operations. Each stream has a thread, which is started when there is work
 * and exits after a period without.
 *
 * An operation first waits for its marks on other streams. Marks refer to earlier submissions only,
 * so waiting cannot deadlock. A cancelled stream, and every stream after a kernel's failure, drops
 * its operations without running them; it still counts them as completed.
 * Ownership: reference counted (object.h).
 * Threads: any.
 * Errors: CUDA_SUCCESS or an error as CUresult.
 */
#ifndef GS_STREAM_H
#define GS_STREAM_H

#include "softgpu/driver/driver.h"
#include "softgpu/driver/object.h"

#define GS_PRIORITY_LEAST 0
#define GS_PRIORITY_GREATEST (-5)

struct gs_stream;
struct gs_green;

/* A position in a stream's work: the end of the operation with sequence number `seq`. Contains a
 * reference to the stream. */
struct gs_mark {
	struct gs_stream *stream;
	uint64_t seq;
};

/* A queued operation; embedded in a struct that the submitting call allocates. */
struct gs_op {
	struct gs_op *next;
	uint64_t seq;
	/* marks that the operation waits for, each with a reference to its stream; freed with
	 * the operation */
	struct gs_mark *waits;
	unsigned int wait_count;
	bool always; /* run even when the stream drops its work */
	/* Called by the stream's thread. */
	void (*run)(struct gs_op *op, struct gs_stream *stream);
	/* Frees the operation; called once, after it has run or was dropped, by the stream's
	 * thread, or by the submitting thread if submission fails. */
	void (*release)(struct gs_op *op);
};

/*
 * Returns a new reference to the stream of NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a live
 * handle, which gs_stream_put() drops. NULL: no such stream; gs_stream_missing() returns the error
 * that the call is to return.
 */
struct gs_stream *gs_stream_get(CUstream handle);
/* Returns the reason for a NULL from gs_stream_get(): CUDA_ERROR_CONTEXT_IS_DESTROYED if the
 * stream's green context has ended, otherwise CUDA_ERROR_INVALID_HANDLE. */
CUresult gs_stream_missing(CUstream handle);
/* Returns whether the handle names a default stream: NULL, CU_STREAM_LEGACY or
 * CU_STREAM_PER_THREAD. */
bool gs_stream_is_special(CUstream handle);
void gs_stream_put(struct gs_stream *stream);

/* Submits an operation and takes ownership of it. Stores its sequence number in *seq_p; seq_p may
 * be NULL. Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY after releasing the operation. Does
 * not wait. */
CUresult gs_stream_submit(struct gs_stream *stream, struct gs_op *op, uint64_t *seq_p);

/* Waits, without a limit, until the operation is complete or dropped. Returns the sticky error of
 * gs_failure(), or CUDA_SUCCESS. */
CUresult gs_stream_wait(struct gs_stream *stream, uint64_t seq);
/* Returns whether the operation is complete or dropped. Does not wait. */
bool gs_stream_reached(struct gs_stream *stream, uint64_t seq);
/* Waits, without a limit, for the work submitted so far to the green context's streams; with a NULL
 * green context, to all streams of the device (-1: of all devices). Returns the sticky error, or
 * CUDA_SUCCESS. */
CUresult gs_stream_synchronize_all(const struct gs_green *green, int device);

/* With wait, waits until all work submitted so far is complete. Otherwise returns
 * CUDA_ERROR_NOT_READY if work is pending. For the legacy stream this includes work that its next
 * operation would wait for. Also returns CUDA_SUCCESS, the sticky error, or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gs_stream_check(struct gs_stream *stream, bool wait);
/* Makes the stream drop its queued and its later work, stops the running operation and waits until
 * the stream is idle. Returns the sticky error, or CUDA_SUCCESS. */
CUresult gs_stream_cancel(struct gs_stream *stream);
unsigned int gs_stream_flags(const struct gs_stream *stream);
int gs_stream_priority(const struct gs_stream *stream);

/* Returns whether the running operation must stop. */
bool gs_stream_stopped(const struct gs_stream *stream);
/* Returns the flag for struct gs_launch: nonzero when the running operation must stop. It is
 * valid as long as the stream. */
const volatile int *gs_stream_cancel_flag(const struct gs_stream *stream);
/* Makes all streams drop their work; called when a kernel has failed. Does not wait. */
void gs_stream_stop_all(void);

/* Retires the handles of all streams when the context ends, and drops their creators'
 * references. */
void gs_stream_destroy_all(void);

/* Returns the green context of the stream, on which the stream has a reference; the caller gets
 * none. NULL: the stream belongs to a primary context. */
struct gs_green *gs_stream_green(const struct gs_stream *stream);

int gs_stream_device(const struct gs_stream *stream);

/* Creates a stream of the green context (NULL: of the device's primary context) without a handle.
 * Returns the creator's reference, which gs_stream_close() drops, or NULL if out of memory. flags:
 * CUstream_flags; priorities outside of the range are clamped. */
struct gs_stream *gs_stream_create(struct gs_green *green, int device, unsigned int flags,
				   int priority);
/* Drops the creator's reference. Queued work is still executed; then the stream's thread exits. */
void gs_stream_close(struct gs_stream *stream);
/* Makes the stream's handle valid and stores it in *handle. */
void gs_stream_publish(struct gs_stream *stream, CUstream *handle);

/* Orders the stream's next operation after all work submitted so far to the green context's
 * streams; with NULL, to all streams of the stream's device. Does not wait. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gs_stream_join(struct gs_stream *stream, const struct gs_green *green);
/* Orders the stream's next operation after all work submitted so far to `other`. Does not wait.
 * Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gs_stream_follow(struct gs_stream *stream, struct gs_stream *other);
/* Calls visit() for every stream of the green context (NULL: those without a green context) until a
 * call fails. Returns the result of the last call, or CUDA_SUCCESS if there is no such stream. No
 * lock is held during a call; the stream is referenced. */
CUresult gs_stream_each(const struct gs_green *green,
			CUresult (*visit)(struct gs_stream *stream, void *arg), void *arg);

#endif /* GS_STREAM_H */
