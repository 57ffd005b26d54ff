/* SPDX-License-Identifier: Apache-2.0 */
/* Stream memory operations (write value and wait value), and host functions. */
#include "base/clock.h"
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/stream.h"

#include <sched.h>
#include <stdlib.h>

/* A wait yields this many times, then sleeps between polls. */
#define YIELDS 200
#define SLEEP_NS 50000

struct word_op {
	struct gs_op op;
	uint64_t address, value;
	unsigned int size, flags;
};

struct host_op {
	struct gs_op op;
	CUhostFn func;
	void *arg;
};

static void
release(struct gs_op *op)
{
	free(op);
}

static void *
word_at(uint64_t address)
{
	return (void *)address; /* NOLINT(performance-no-int-to-ptr) */
}

static void
store(const struct word_op *word)
{
	void *at = word_at(word->address);

	if (word->size == 8)
		__atomic_store_n((uint64_t *)at, word->value, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n((uint32_t *)at, (uint32_t)word->value, __ATOMIC_SEQ_CST);
}

static uint64_t
load(const struct word_op *word)
{
	const void *at = word_at(word->address);

	return word->size == 8 ? __atomic_load_n((const uint64_t *)at, __ATOMIC_SEQ_CST)
			       : __atomic_load_n((const uint32_t *)at, __ATOMIC_SEQ_CST);
}

static void
fail(const char *who)
{
	gs_fail(CUDA_ERROR_ILLEGAL_ADDRESS, who, "its memory was unmapped meanwhile");
}

static void
write_run(struct gs_op *op, struct gs_stream *stream)
{
	const struct word_op *word = (const struct word_op *)op;
	bool usable;

	gs_space_read_lock();
	usable = gs_space_usable_locked(word->address, word->size, true, gs_stream_device(stream));
	if (usable)
		store(word);
	gs_space_read_unlock();
	if (!usable)
		fail("cuStreamWriteValue");
}

static bool
is_met(const struct word_op *word, uint64_t now)
{
	uint64_t mask = word->size == 8 ? UINT64_MAX : UINT32_MAX;

	switch (word->flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == word->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & word->value) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return (~(now | word->value) & mask) != 0;
	default:
		return ((now - word->value) & mask) <= mask / 2;
	}
}

/* Returns -1 if the word cannot be read any more. */
static int
poll_word(const struct word_op *word, int device)
{
	int met = -1;

	gs_space_read_lock();
	if (gs_space_usable_locked(word->address, word->size, false, device))
		met = is_met(word, load(word));
	gs_space_read_unlock();
	return met;
}

static void
wait_run(struct gs_op *op, struct gs_stream *stream)
{
	int met = 0;

	for (unsigned int n = 0; !gs_stream_stopped(stream); n++) {
		met = poll_word((const struct word_op *)op, gs_stream_device(stream));
		if (met)
			break;
		if (n < YIELDS)
			sched_yield();
		else
			gp_sleep_ns(SLEEP_NS);
	}
	if (met < 0)
		fail("cuStreamWaitValue");
}

/* Copies the parameters in `from`. */
static CUresult
submit_word(CUstream handle, const struct word_op *from, bool write)
{
	struct gs_stream *stream;
	struct word_op *op;
	CUresult r;

	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	if (from->address % from->size ||
	    !gs_space_is_device(from->address, from->size, write, gs_stream_device(stream))) {
		gs_stream_put(stream);
		return CUDA_ERROR_INVALID_VALUE;
	}
	op = malloc(sizeof(*op));
	if (op) {
		*op = *from;
		op->op.run = write ? write_run : wait_run;
		op->op.release = release;
		r = gs_stream_submit(stream, &op->op, NULL);
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_stream_put(stream);
	return r;
}

static CUresult
write_word(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int size,
	   unsigned int flags)
{
	const struct word_op op = { .address = address, .value = value, .size = size };
	CUresult r = gs_enter();

	if (r)
		return r;
	if (flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return submit_word(stream, &op, true);
}

static CUresult
wait_for_word(CUstream stream, CUdeviceptr address, uint64_t value, unsigned int size,
	      unsigned int flags)
{
	const struct word_op op = {
		.address = address, .value = value, .size = size, .flags = flags
	};
	CUresult r = gs_enter();

	if (r)
		return r;
	if ((flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	return submit_word(stream, &op, false);
}

CUresult CUDAAPI
cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return write_word(stream, address, value, sizeof(value), flags);
}

CUresult CUDAAPI
cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	return write_word(stream, address, value, sizeof(value), flags);
}

CUresult CUDAAPI
cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return wait_for_word(stream, address, value, sizeof(value), flags);
}

CUresult CUDAAPI
cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	return wait_for_word(stream, address, value, sizeof(value), flags);
}

static void
host_run(struct gs_op *op, struct gs_stream *stream)
{
	const struct host_op *host = (const struct host_op *)op;

	host->func(host->arg);
}

CUresult CUDAAPI
cuLaunchHostFunc(CUstream handle, CUhostFn func, void *arg)
{
	struct gs_stream *stream;
	struct host_op *op;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!func)
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	op = calloc(1, sizeof(*op));
	if (op) {
		op->op.run = host_run;
		op->op.release = release;
		op->func = func;
		op->arg = arg;
		r = gs_stream_submit(stream, &op->op, NULL);
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_stream_put(stream);
	return r;
}
