/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory: one address on the host and on the device, and each side sees the writes of the
 * other. */
#include "app.h"

#include <algorithm>
#include <thread>

template <typename T>
static T *
managed(size_t count, unsigned int flags = cudaMemAttachGlobal)
{
	T *memory = nullptr;

	CHECK(cudaMallocManaged(&memory, count * sizeof(T), flags));
	return memory;
}

struct node {
	node *next;
	int value;
};

static __global__ void
walk(node *first, int *sum)
{
	*sum = 0;
	for (node *at = first; at; at = at->next) {
		*sum += at->value;
		at->value = -at->value;
	}
}

/* Built by the host, with one small allocation per element. */
static void
list()
{
	const int count = 3000;
	int *sum = managed<int>(1), expected = 0, after = 0;
	node *first = nullptr;

	for (int i = 0; i < count; i++) {
		node *one = managed<node>(1);

		one->value = i * 7;
		one->next = first;
		first = one;
		expected += one->value;
	}
	walk<<<1, 1>>>(first, sum);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(*sum == expected);
	while (first) {
		node *next = first->next;

		after += first->value;
		CHECK(cudaFree(first));
		first = next;
	}
	REQUIRE(after == -expected);
	CHECK(cudaFree(sum));
	printf("a list of %d nodes: %d\n", count, expected);
}

static __global__ void
step(unsigned int *data, size_t count, unsigned int add)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		data[i] = data[i] * 3 + add;
}

/* Alternating accesses; the host touches all of the memory in some rounds and little in others. */
static void
ping_pong()
{
	const size_t count = 3 * 1000 * 1000 + 17;
	unsigned int *data = managed<unsigned int>(count);
	std::vector<unsigned int> model(count);

	for (size_t i = 0; i < count; i++)
		data[i] = model[i] = (unsigned int)i;
	for (unsigned int round = 0; round < 12; round++) {
		step<<<8, 128>>>(data, count, round);
		for (auto &value : model)
			value = value * 3 + round;
		CHECK(cudaDeviceSynchronize());
		if (round % 4 == 3) {
			REQUIRE(std::equal(model.begin(), model.end(), data));
			for (size_t i = 0; i < count; i += 3)
				data[i] = model[i] = model[i] ^ round;
		} else {
			size_t one = (size_t)round * 7919 * 31 % count;

			REQUIRE(data[one] == model[one]);
			data[one] = model[one] = round;
		}
	}
	REQUIRE(std::equal(model.begin(), model.end(), data));
	CHECK(cudaFree(data));
	printf("by turns\n");
}

/* Copies and fills, with managed memory on either side. */
static void
copies()
{
	const size_t count = 300000;
	int *from = managed<int>(count), *to = managed<int>(count),
	    *device = app_malloc<int>(count);
	std::vector<int> host(count);

	for (size_t i = 0; i < count; i++)
		from[i] = (int)i;
	CHECK(cudaMemcpy(to, from, count * sizeof(int), cudaMemcpyDefault));
	REQUIRE(to[0] == 0 && to[count - 1] == (int)count - 1 && to[count / 2] == (int)count / 2);
	from[5] = 50;
	CHECK(cudaMemcpy(device, from, count * sizeof(int), cudaMemcpyHostToDevice));
	from[5] = 51;
	CHECK(cudaMemcpy(host.data(), device, count * sizeof(int), cudaMemcpyDeviceToHost));
	REQUIRE(host[5] == 50 && host[6] == 6);
	CHECK(cudaMemcpy(host.data(), from, count * sizeof(int), cudaMemcpyDeviceToHost));
	REQUIRE(host[5] == 51 && host[6] == 6);
	host[7] = 70;
	to[9] = 90;
	CHECK(cudaMemcpy(to, host.data(), 8 * sizeof(int), cudaMemcpyHostToDevice));
	REQUIRE(to[7] == 70 && to[8] == 8 && to[9] == 90 && to[5] == 51);
	CHECK(cudaMemset(to + 100, 1, 100 * sizeof(int)));
	REQUIRE(to[99] == 99 && to[100] == 0x01010101 && to[199] == 0x01010101 && to[200] == 200);
	CHECK(cudaMemset2D(to, 1000, 2, 16, 10));
	REQUIRE(to[0] == 0x02020202 && to[4] == 4 && to[250] == 0x02020202 &&
		to[9 * 250 + 4] == 9 * 250 + 4);
	CHECK(cudaMemcpy2D(to + 5, 1000, from, 2000, 8, 20, cudaMemcpyDefault));
	REQUIRE(to[5] == 0 && to[6] == 1 && to[255] == 500 && to[256] == 501 && to[257] == 257);
	CHECK(cudaFree(from));
	CHECK(cudaFree(to));
	CHECK(cudaFree(device));
	printf("copies and fills\n");
}

/* The same in stream order, directly and in a graph. */
static void
in_order()
{
	const size_t count = 100000, size = count * sizeof(int);
	int *from = managed<int>(count), *to = managed<int>(count),
	    *device = app_malloc<int>(count), *pinned;
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&pinned, size));
	for (size_t i = 0; i < count; i++)
		from[i] = (int)(i * 3);
	CHECK(cudaMemcpyAsync(pinned, from, size, cudaMemcpyDefault, stream));
	CHECK(cudaMemcpyAsync(device, from, size, cudaMemcpyDefault, stream));
	CHECK(cudaMemcpyAsync(to, device, size, cudaMemcpyDefault, stream));
	CHECK(cudaMemsetAsync(to, 0, 40, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < count; i++)
		REQUIRE(pinned[i] == (int)(i * 3) && to[i] == (i < 10 ? 0 : (int)(i * 3)));
	pinned[0] = 5;
	CHECK(cudaMemcpyAsync(to + 20, pinned, 4, cudaMemcpyDefault, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(to[19] == 57 && to[20] == 5 && to[21] == 63);

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(device, from, size, cudaMemcpyDefault, stream));
	step<<<2, 64, 0, stream>>>((unsigned int *)device, count, 1);
	CHECK(cudaMemcpyAsync(to, device, size, cudaMemcpyDefault, stream));
	CHECK(cudaMemsetAsync(from, 0, 8, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int round = 1; round < 4; round++) {
		from[0] = round;
		to[1] = -1;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		REQUIRE(to[0] == round * 3 + 1 && to[1] == (round == 1 ? 10 : 1) && to[5] == 46 &&
			from[0] == 0);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(from));
	CHECK(cudaFree(to));
	CHECK(cudaFree(device));
	printf("in order\n");
}

static __global__ void
wait_and_add(int *cell, int add)
{
	long long until = clock64() + 2000000;

	while (clock64() < until)
		;
	*cell += add;
}

/* Waits for a single stream, for an event, and by an access that itself waits. */
static void
streams()
{
	cudaStream_t one, two;
	cudaEvent_t event;
	int *cells = managed<int>(2);

	CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	CHECK(cudaStreamCreate(&two));
	CHECK(cudaEventCreate(&event));
	cells[0] = 1;
	cells[1] = 10;
	wait_and_add<<<1, 1, 0, one>>>(cells, 1);
	CHECK(cudaStreamSynchronize(one));
	REQUIRE(cells[0] == 2 && cells[1] == 10);
	wait_and_add<<<1, 1, 0, two>>>(cells + 1, 5);
	CHECK(cudaEventRecord(event, two));
	CHECK(cudaEventSynchronize(event));
	REQUIRE(cells[0] == 2 && cells[1] == 15);
	cells[0] = 100;
	wait_and_add<<<1, 1, 0, one>>>(cells, 1);
	wait_and_add<<<1, 1, 0, one>>>(cells + 1, 1);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(cells[0] == 101 && cells[1] == 16);
	CHECK(cudaStreamDestroy(one));
	CHECK(cudaStreamDestroy(two));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(cells));
	printf("streams\n");
}

struct note {
	int *cell;
	int seen;
};

static void CUDART_CB
read_and_change(void *data)
{
	note *n = (note *)data;

	n->seen = *n->cell;
	*n->cell = n->seen * 2;
}

/* A host function between two kernels sees the writes of the first, and the second sees those of
 * the function. */
static void
functions()
{
	cudaStream_t stream;
	int *cell = managed<int>(1);
	note notes[5];

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	*cell = 1;
	for (note &n : notes) {
		n.cell = cell;
		wait_and_add<<<1, 1, 0, stream>>>(cell, 1);
		CHECK(cudaLaunchHostFunc(stream, read_and_change, &n));
	}
	wait_and_add<<<1, 1, 0, stream>>>(cell, 1000);
	CHECK(cudaStreamSynchronize(stream));
	for (note &n : notes)
		printf("a function saw %d\n", n.seen);
	printf("and left %d\n", *cell);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(cell));
}

/* Each thread has its own memory and work, and changes its part of shared memory. */
static void
threads()
{
	const int number = 6, rounds = 8, part = 5000;
	unsigned int *all = managed<unsigned int>(number * part);
	std::vector<std::thread> list;
	std::vector<int> good(number);

	for (int t = 0; t < number; t++) {
		list.emplace_back([=, &good] {
			unsigned int *own = managed<unsigned int>(70000), expected = 0;
			cudaStream_t stream;
			bool same = true;

			CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
			for (int i = 0; i < part; i++)
				all[t * part + i] = (unsigned int)(t + i);
			memset(own, 0, 70000 * sizeof(*own));
			for (int r = 0; r < rounds; r++) {
				step<<<2, 64, 0, stream>>>(own, 70000, (unsigned int)r);
				expected = expected * 3 + (unsigned int)r;
				CHECK(cudaStreamSynchronize(stream));
				for (int i = 0; i < 70000; i += 1777)
					same = same && own[i] == expected;
				own[r] = own[r] + 1 - 1;
			}
			good[t] = same;
			CHECK(cudaStreamDestroy(stream));
			CHECK(cudaFree(own));
		});
	}
	for (auto &one : list)
		one.join();
	for (int t = 0; t < number; t++) {
		REQUIRE(good[t]);
		for (int i = 0; i < part; i++)
			REQUIRE(all[t * part + i] == (unsigned int)(t + i));
	}
	CHECK(cudaFree(all));
	printf("threads\n");
}

/* In a graph, and as launch parameters. */
static void
graph()
{
	unsigned int *data = managed<unsigned int>(100);
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	step<<<1, 32, 0, stream>>>(data, 100, 1);
	step<<<1, 32, 0, stream>>>(data, 100, 2);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned int i = 0; i < 5; i++) {
		data[99] = i;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		REQUIRE(data[99] == (i * 3 + 1) * 3 + 2);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(data));
	printf("a graph\n");
}

static void
errors()
{
	void *memory = nullptr;

	EXPECT(cudaErrorInvalidValue, cudaMallocManaged(&memory, 16, 0));
	EXPECT(cudaErrorInvalidValue, cudaMallocManaged(&memory, 16, cudaMemAttachSingle));
	printf("errors\n");
}

/* Freed memory is reused, and its old contents are not visible. */
static void
again()
{
	for (int i = 0; i < 30; i++) {
		size_t count = 1000 + (size_t)i * 40000;
		unsigned int *data = managed<unsigned int>(count);

		data[0] = data[count - 1] = (unsigned int)i;
		step<<<1, 32>>>(data, count, 1);
		if (i % 3)
			CHECK(cudaDeviceSynchronize());
		if (i % 3)
			REQUIRE(data[0] == (unsigned int)i * 3 + 1 &&
				data[count - 1] == (unsigned int)i * 3 + 1);
		CHECK(cudaFree(data));
	}
	/* All of a mapping, which only the GPU writes. */
	for (unsigned int i = 0; i < 4; i++) {
		size_t count = 4 << 20;
		unsigned int *data = managed<unsigned int>(count);

		CHECK(cudaMemset(data, (int)i, count * sizeof(*data)));
		step<<<8, 128>>>(data, count, 1);
		CHECK(cudaDeviceSynchronize());
		for (size_t at = 0; at < count; at += 1000)
			REQUIRE(data[at] == i * 0x01010101 * 3 + 1);
		CHECK(cudaFree(data));
	}
	printf("used again\n");
}

int
main()
{
	int value = 0;

	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrManagedMemory, 0));
	REQUIRE(value == 1);
	errors();
	list();
	ping_pong();
	copies();
	in_order();
	streams();
	functions();
	threads();
	graph();
	again();
	return app_ok("managed");
}
