/* SPDX-License-Identifier: Apache-2.0 */
/* Words of device memory that streams write and wait for: single operations, batches, captures,
 * graphs. */
#include "app.h"

#include <cuda.h>
#include <vector>

#define DRIVER(name) static decltype(&name) p_##name
#define LOAD(name) p_##name = reinterpret_cast<decltype(&name)>(entry(#name))
#define DCHECK(call) dcheck(CUDA_SUCCESS, call, #call, __LINE__)
#define DEXPECT(expected, call) dcheck(expected, call, #call, __LINE__)

DRIVER(cuStreamWaitValue32);
DRIVER(cuStreamWaitValue64);
DRIVER(cuStreamWriteValue32);
DRIVER(cuStreamWriteValue64);
DRIVER(cuStreamBatchMemOp);
DRIVER(cuGraphAddBatchMemOpNode);
DRIVER(cuGraphBatchMemOpNodeGetParams);
DRIVER(cuGraphBatchMemOpNodeSetParams);
DRIVER(cuGraphExecBatchMemOpNodeSetParams);
DRIVER(cuGraphNodeGetType);
DRIVER(cuCtxGetCurrent);

static void *
entry(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
	REQUIRE(function);
	return function;
}

static void
dcheck(CUresult expected, CUresult result, const char *call, int line)
{
	if (result == expected)
		return;
	printf("line %d: %s: %d, expected %d\n", line, call, (int)result, (int)expected);
	exit(1);
}

/* Two non-blocking streams, and words that start as zeros. */
static cudaStream_t waiter, other;
static unsigned int *words;
static unsigned long long *longs;

static CUdeviceptr
address(const void *pointer)
{
	return reinterpret_cast<CUdeviceptr>(pointer);
}

static unsigned int
word(int i)
{
	unsigned int value;

	CHECK(cudaMemcpyAsync(&value, words + i, sizeof(value), cudaMemcpyDeviceToHost, other));
	CHECK(cudaStreamSynchronize(other));
	return value;
}

static unsigned long long
longer(int i)
{
	unsigned long long value;

	CHECK(cudaMemcpyAsync(&value, longs + i, sizeof(value), cudaMemcpyDeviceToHost, other));
	CHECK(cudaStreamSynchronize(other));
	return value;
}

static void
clear()
{
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemset(words, 0, 64 * sizeof(*words)));
	CHECK(cudaMemset(longs, 0, 64 * sizeof(*longs)));
	CHECK(cudaDeviceSynchronize());
}

static __global__ void
set(unsigned int *where, unsigned int value)
{
	*where = value;
}

static __global__ void
double_it(unsigned int *where)
{
	*where *= 2;
}

/* The stream's last work is not done, because the word that it waits for has another value. */
static void
require_waiting()
{
	REQUIRE(cudaStreamQuery(waiter) == cudaErrorNotReady);
	(void)cudaGetLastError();
	REQUIRE(word(1) == 0);
}

/* The stream waits for word 0 to be 7, then word 1 becomes 2 * word 2. */
static void
begin_wait()
{
	clear();
	DCHECK(p_cuStreamWriteValue32(waiter, address(words + 2), 21, 0));
	DCHECK(p_cuStreamWaitValue32(waiter, address(words), 7, CU_STREAM_WAIT_VALUE_EQ));
	double_it<<<1, 1, 0, waiter>>>(words + 2);
	CHECK(cudaMemcpyAsync(words + 1, words + 2, 4, cudaMemcpyDeviceToDevice, waiter));
	require_waiting();
}

static void
end_wait(const char *who)
{
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 42);
	printf("written by %s: seen\n", who);
}

static void
writers()
{
	const unsigned int seven = 7, eight = 8;

	begin_wait();
	set<<<1, 1, 0, other>>>(words, 8);
	require_waiting();
	set<<<1, 1, 0, other>>>(words, 7);
	end_wait("a kernel");
	begin_wait();
	CHECK(cudaMemcpyAsync(words, &eight, 4, cudaMemcpyHostToDevice, other));
	require_waiting();
	CHECK(cudaMemcpyAsync(words, &seven, 4, cudaMemcpyHostToDevice, other));
	end_wait("a copy");
	begin_wait();
	CHECK(cudaMemsetAsync(words, 7, 1, other));
	end_wait("a memset");
	begin_wait();
	DCHECK(p_cuStreamWriteValue32(other, address(words), 6, 0));
	require_waiting();
	DCHECK(p_cuStreamWriteValue32(other, address(words), 7, 0));
	end_wait("a stream");
}

/* Waits of 32 and of 64 bits that are already satisfied, and one that only this value satisfies. */
static void
condition(const char *name, unsigned int flags, unsigned long long now, unsigned long long before,
	  unsigned long long value)
{
	clear();
	DCHECK(p_cuStreamWriteValue32(other, address(words), (unsigned int)before, 0));
	DCHECK(p_cuStreamWriteValue64(other, address(longs), before, 0));
	CHECK(cudaStreamSynchronize(other));
	DCHECK(p_cuStreamWaitValue32(waiter, address(words), (unsigned int)value, flags));
	DCHECK(p_cuStreamWriteValue32(waiter, address(words + 1), 1, 0));
	require_waiting();
	DCHECK(p_cuStreamWriteValue32(other, address(words), (unsigned int)now, 0));
	CHECK(cudaStreamSynchronize(waiter));
	DCHECK(p_cuStreamWaitValue64(waiter, address(longs), value, flags));
	DCHECK(p_cuStreamWriteValue64(waiter, address(longs + 1), 1, 0));
	REQUIRE(longer(1) == 0 && cudaStreamQuery(waiter) == cudaErrorNotReady);
	(void)cudaGetLastError();
	DCHECK(p_cuStreamWriteValue64(other, address(longs), now, 0));
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 1 && longer(1) == 1);
	printf("condition %s\n", name);
}

static void
conditions()
{
	const unsigned long long all = ~0ull;

	condition("EQ", CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5);
	condition("GEQ", CU_STREAM_WAIT_VALUE_GEQ, 6, 4, 5);
	condition("GEQ around zero", CU_STREAM_WAIT_VALUE_GEQ, 1, all - 3, all);
	condition("AND", CU_STREAM_WAIT_VALUE_AND, 12, 3, 8);
	condition("NOR", CU_STREAM_WAIT_VALUE_NOR, all - 16, all, 15);
	clear();
	DCHECK(p_cuStreamWriteValue64(other, address(longs), 1ull << 40, 0));
	DCHECK(p_cuStreamWaitValue64(other, address(longs), 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
	REQUIRE(longer(0) == 1ull << 40);
}

static CUstreamBatchMemOpParams
operation(CUstreamBatchMemOpType type, const void *where, unsigned int value)
{
	CUstreamBatchMemOpParams op = {};

	/* The structs of waits and writes have the same layout. */
	op.waitValue.operation = type;
	op.waitValue.address = address(where);
	op.waitValue.value = value;
	op.waitValue.flags =
		type == CU_STREAM_MEM_OP_WAIT_VALUE_32 ? (unsigned int)CU_STREAM_WAIT_VALUE_EQ : 0;
	return op;
}

static void
lists()
{
	CUstreamBatchMemOpParams ops[] = {
		operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, words + 2, 1),
		operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, words, 1),
		operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, words + 3, 2),
		operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, words + 1, 3),
	};

	clear();
	DCHECK(p_cuStreamBatchMemOp(waiter, 4, ops, 0));
	DCHECK(p_cuStreamWaitValue32(other, address(words + 2), 1, CU_STREAM_WAIT_VALUE_GEQ));
	require_waiting();
	DCHECK(p_cuStreamWriteValue32(other, address(words), 1, 0));
	require_waiting();
	DCHECK(p_cuStreamWriteValue32(other, address(words + 3), 2, 0));
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 3);
	printf("a list of operations\n");
}

static void
wrong()
{
	CUstreamBatchMemOpParams op = operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, words, 1);
	std::vector<CUstreamBatchMemOpParams> many(257, op);
	CUdeviceptr at = address(words);

	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamWriteValue32(other, at + 2, 1, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamWriteValue64(other, at + 4, 1, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamWaitValue32(other, at + 1, 0, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamWaitValue64(other, at + 4, 0, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamWriteValue32(other, 0, 1, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamBatchMemOp(other, 1, &op, 8));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, p_cuStreamBatchMemOp(other, 257, many.data(), 0));
	printf("what is wrong is refused\n");
}

static void
graphs()
{
	CUstreamBatchMemOpParams ops[] = {
		operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, words, 9),
		operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, words + 1, 10),
	};
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {}, told = {};
	CUgraphNodeType type;
	CUgraphNode added;
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	size_t count = 1;

	clear();
	CHECK(cudaStreamBeginCapture(waiter, cudaStreamCaptureModeThreadLocal));
	DCHECK(p_cuStreamWaitValue32(waiter, address(words), 5, CU_STREAM_WAIT_VALUE_EQ));
	double_it<<<1, 1, 0, waiter>>>(words + 4);
	DCHECK(p_cuStreamWriteValue32(waiter, address(words + 1), 1, 0));
	CHECK(cudaStreamEndCapture(waiter, &graph));
	CHECK(cudaGraphGetRootNodes(graph, &node, &count));
	DCHECK(p_cuGraphNodeGetType(node, &type));
	REQUIRE(count == 1 && type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
	DCHECK(p_cuGraphBatchMemOpNodeGetParams(node, &told));
	REQUIRE(told.count == 1 && told.paramArray[0].waitValue.value == 5 &&
		told.paramArray[0].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	set<<<1, 1, 0, waiter>>>(words + 4, 4);
	CHECK(cudaGraphLaunch(exec, waiter));
	require_waiting();
	DCHECK(p_cuStreamWriteValue32(other, address(words), 5, 0));
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 1 && word(4) == 8);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	printf("captured\n");

	clear();
	DCHECK(p_cuCtxGetCurrent(&params.ctx));
	params.count = 1;
	params.paramArray = ops + 1;
	CHECK(cudaGraphCreate(&graph, 0));
	DCHECK(p_cuGraphAddBatchMemOpNode(&added, graph, nullptr, 0, &params));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, waiter));
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 10);
	clear();
	ops[1].writeValue.value = 11;
	DCHECK(p_cuGraphExecBatchMemOpNodeSetParams(exec, added, &params));
	DCHECK(p_cuGraphBatchMemOpNodeGetParams(added, &told));
	REQUIRE(told.paramArray[0].writeValue.value == 10);
	CHECK(cudaGraphLaunch(exec, waiter));
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 11);
	params.count = 2;
	params.paramArray = ops;
	DCHECK(p_cuGraphBatchMemOpNodeSetParams(added, &params));
	DCHECK(p_cuGraphBatchMemOpNodeGetParams(added, &told));
	REQUIRE(told.count == 2 && told.paramArray[1].writeValue.value == 11);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	clear();
	CHECK(cudaGraphLaunch(exec, waiter));
	require_waiting();
	DCHECK(p_cuStreamWriteValue32(other, address(words), 9, 0));
	CHECK(cudaStreamSynchronize(waiter));
	REQUIRE(word(1) == 11);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	printf("nodes of a graph\n");
}

/* A waiting stream does not block other work. */
static void
beside()
{
	cudaStream_t waiters[4];

	clear();
	for (int i = 0; i < 4; i++) {
		CHECK(cudaStreamCreateWithFlags(&waiters[i], cudaStreamNonBlocking));
		DCHECK(p_cuStreamWaitValue32(waiters[i], address(words + 8 * i), 1,
					     CU_STREAM_WAIT_VALUE_GEQ));
		DCHECK(p_cuStreamWriteValue32(waiters[i], address(words + 8 * i + 1), 1, 0));
	}
	set<<<1, 1, 0, other>>>(words + 50, 1);
	for (int i = 0; i < 5; i++)
		double_it<<<1, 1, 0, other>>>(words + 50);
	REQUIRE(word(50) == 32);
	for (int i = 3; i >= 0; i--) {
		REQUIRE(word(8 * i + 1) == 0);
		set<<<1, 1, 0, other>>>(words + 8 * i, 1);
		CHECK(cudaStreamSynchronize(waiters[i]));
		REQUIRE(word(8 * i + 1) == 1);
		CHECK(cudaStreamDestroy(waiters[i]));
	}
	printf("four streams wait beside another one\n");
}

int
main()
{
	LOAD(cuStreamWaitValue32);
	LOAD(cuStreamWaitValue64);
	LOAD(cuStreamWriteValue32);
	LOAD(cuStreamWriteValue64);
	LOAD(cuStreamBatchMemOp);
	LOAD(cuGraphAddBatchMemOpNode);
	LOAD(cuGraphBatchMemOpNodeGetParams);
	LOAD(cuGraphBatchMemOpNodeSetParams);
	LOAD(cuGraphExecBatchMemOpNodeSetParams);
	LOAD(cuGraphNodeGetType);
	LOAD(cuCtxGetCurrent);
	words = app_malloc<unsigned int>(64);
	longs = app_malloc<unsigned long long>(64);
	CHECK(cudaStreamCreateWithFlags(&waiter, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	/* Kernels are loaded before a stream waits. */
	set<<<1, 1>>>(words, 0);
	double_it<<<1, 1>>>(words);
	writers();
	conditions();
	lists();
	wrong();
	graphs();
	beside();
	printf("memops: ok\n");
	return 0;
}
