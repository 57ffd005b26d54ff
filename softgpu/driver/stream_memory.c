/* SPDX-License-Identifier: Apache-2.0 */
/* Words written and waited for by streams, and host functions called from them. */
#include "base/clock.h"
#include "softgpu/driver/space.h"
#include "softgpu/driver/stream.h"

#include <sched.h>
#include <stdlib.h>

/* A wait yields this often, then sleeps between two looks. */
#define YIELDS 200
#define SLEEP_NS 50000

struct word_op {
	struct gs_op op;
	uint64_t address;
	uint32_t value;
	unsigned int flags;
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

static uint32_t *
word_at(uint64_t address)
{
	return (uint32_t *)address; /* NOLINT(performance-no-int-to-ptr) */
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
	usable = gs_space_usable_locked(word->address, sizeof(uint32_t), true);
	if (usable)
		__atomic_store_n(word_at(word->address), word->value, __ATOMIC_SEQ_CST);
	gs_space_read_unlock();
	if (!usable)
		fail("cuStreamWriteValue32");
}

static bool
is_met(const struct word_op *word, uint32_t now)
{
	switch (word->flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == word->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & word->value) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return ~(now | word->value) != 0;
	default:
		return (int32_t)(now - word->value) >= 0;
	}
}

/* -1: the word cannot be read any more. */
static int
look(const struct word_op *word)
{
	int met = -1;

	gs_space_read_lock();
	if (gs_space_usable_locked(word->address, sizeof(uint32_t), false))
		met = is_met(word, __atomic_load_n(word_at(word->address), __ATOMIC_SEQ_CST));
	gs_space_read_unlock();
	return met;
}

static void
wait_run(struct gs_op *op, struct gs_stream *stream)
{
	int met = 0;

	for (unsigned int n = 0; !gs_stream_stopped(stream); n++) {
		met = look((const struct word_op *)op);
		if (met)
			break;
		if (n < YIELDS)
			sched_yield();
		else
			gp_nap(SLEEP_NS);
	}
	if (met < 0)
		fail("cuStreamWaitValue32");
}

static CUresult
submit_word(CUstream handle, uint64_t address, uint32_t value, unsigned int flags, bool write)
{
	struct gs_stream *stream;
	struct word_op *op;
	CUresult r;

	if (address % sizeof(uint32_t) || !gs_space_is_device(address, sizeof(uint32_t), write))
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	op = calloc(1, sizeof(*op));
	if (op) {
		op->op.run = write ? write_run : wait_run;
		op->op.release = release;
		op->address = address;
		op->value = value;
		op->flags = flags;
		r = gs_stream_submit(stream, &op->op, NULL);
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_stream_put(stream);
	return r;
}

CUresult CUDAAPI
cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return submit_word(stream, address, value, flags, true);
}

CUresult CUDAAPI
cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if ((flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH) > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	return submit_word(stream, address, value, flags, false);
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
