/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that kernels access: their writes, flags that they wait for, and copies of the
 * memory. wait: a kernel that waits forever. */
#include "app.h"

#include <atomic>
#include <thread>
#include <unistd.h>
#include <vector>

static __global__ void
stencil(const int *in, int *out, int count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		out[i] = (i > 0 ? in[i - 1] : 0) + 2 * in[i] + (i + 1 < count ? in[i + 1] : 0);
}

static __global__ void
publish(volatile int *data, int count, volatile int *flag, int value)
{
	for (int i = 0; i < count; i++)
		data[i] = value + i;
	__threadfence_system();
	*flag = value;
}

/* Like a delay kernel: the host decides when it ends. */
static __global__ void
await(volatile int *flag, int value, const volatile int *data, int *seen)
{
	while (*flag != value)
		continue;
	__threadfence_system();
	*seen = *data;
}

static __global__ void
answer(volatile int *question, volatile int *reply, int rounds)
{
	for (int round = 1; round <= rounds; round++) {
		while (*question != round)
			continue;
		*reply = 3 * round;
		__threadfence_system();
	}
}

static __global__ void
add(int *const *table, int count, int value)
{
	for (int i = 0; i < count; i++)
		table[i][0] += value;
}

template <typename T>
static T *
on_device(T *host)
{
	T *device;

	CHECK(cudaHostGetDevicePointer((void **)&device, (void *)host, 0));
	return device;
}

static int
load(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void
wait_for(const int *word, int value)
{
	for (int i = 0; load(word) != value; i++) {
		REQUIRE(i < 2000000);
		(void)usleep(20);
	}
}

static void
test_stencil()
{
	const int count = 5000;
	int *in, *out;

	CHECK(cudaHostAlloc(&in, count * sizeof(int), cudaHostAllocMapped));
	CHECK(cudaHostAlloc(&out, count * sizeof(int), cudaHostAllocMapped));
	REQUIRE(on_device(in) == in && on_device(in + 7) == in + 7);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < count; i++)
			in[i] = i * (turn + 1);
		/* The second time with the host's addresses. */
		stencil<<<(count + 127) / 128, 128>>>(turn ? in : on_device(in),
						      turn ? out : on_device(out), count);
		CHECK(cudaDeviceSynchronize());
		for (int i = 1; i + 1 < count; i++)
			REQUIRE(out[i] == 4 * i * (turn + 1));
	}
	CHECK(cudaFreeHost(in));
	CHECK(cudaFreeHost(out));
	printf("stencil\n");
}

static void
test_flags(cudaStream_t stream)
{
	const int count = 100;
	int *data, *flag, *word, seen = 0;
	int *there = app_malloc<int>(1);

	CHECK(cudaMallocHost(&data, count * sizeof(int)));
	/* The flag is after the word in memory, so it must also arrive after it. */
	CHECK(cudaMallocHost(&word, 2 * 4096));
	flag = word + 1024;
	*flag = 0;
	publish<<<1, 1, 0, stream>>>(data, count, flag, 41);
	wait_for(flag, 41);
	for (int i = 0; i < count; i++)
		REQUIRE(data[i] == 41 + i);
	CHECK(cudaStreamSynchronize(stream));
	printf("the host has waited for a kernel\n");

	*word = 0;
	await<<<1, 1, 0, stream>>>(flag, 99, word, there);
	REQUIRE(cudaStreamQuery(stream) == cudaErrorNotReady);
	usleep(20000);
	REQUIRE(cudaStreamQuery(stream) == cudaErrorNotReady);
	*word = 1234;
	usleep(5000);
	__atomic_store_n(flag, 99, __ATOMIC_RELEASE);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&seen, there, sizeof(seen), cudaMemcpyDeviceToHost));
	REQUIRE(seen == 1234);
	printf("a kernel has waited for the host\n");

	*flag = 0;
	*word = 0;
	answer<<<1, 1, 0, stream>>>(flag, word, 30);
	for (int round = 1; round <= 30; round++) {
		__atomic_store_n(flag, round, __ATOMIC_RELEASE);
		wait_for(word, 3 * round);
	}
	CHECK(cudaStreamSynchronize(stream));
	printf("they have talked\n");
	CHECK(cudaFree(there));
	CHECK(cudaFreeHost(data));
	CHECK(cudaFreeHost(word));
}

static void
test_copies(cudaStream_t stream)
{
	const int count = 70000;
	const size_t size = count * sizeof(int);
	int *a, *b, *device = app_malloc<int>(count);
	std::vector<int> pageable(count);

	CHECK(cudaMallocHost(&a, size));
	CHECK(cudaMallocHost(&b, size));
	for (int i = 0; i < count; i++)
		a[i] = i;
	/* Kernels and copies in one stream, without synchronization in between. */
	stencil<<<(count + 127) / 128, 128, 0, stream>>>(a, b, count);
	CHECK(cudaMemcpyAsync(device, b, size, cudaMemcpyHostToDevice, stream));
	stencil<<<(count + 127) / 128, 128, 0, stream>>>(device, a, count);
	CHECK(cudaMemcpyAsync(b, a, size, cudaMemcpyHostToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 2; i + 2 < count; i++)
		REQUIRE(a[i] == 16 * i && b[i] == 16 * i);
	CHECK(cudaMemset(b, 0x11, size));
	for (int i = 0; i < count; i++)
		REQUIRE(b[i] == 0x11111111);
	CHECK(cudaMemcpy(pageable.data(), a, size, cudaMemcpyHostToHost));
	REQUIRE(pageable[100] == 1600);
	pageable[100] = 5;
	CHECK(cudaMemcpy(b, pageable.data(), size, cudaMemcpyHostToHost));
	REQUIRE(b[100] == 5 && b[101] == 1616);
	CHECK(cudaMemcpy(device, b, size, cudaMemcpyHostToDevice));
	b[100] = 6;
	CHECK(cudaMemcpy2D(pageable.data(), 40, device, 80, 40, 500, cudaMemcpyDeviceToHost));
	REQUIRE(pageable[50] == b[100] - 1);
	CHECK(cudaMemcpy(b, device, size, cudaMemcpyDeviceToHost));
	REQUIRE(b[100] == 5);
	CHECK(cudaFreeHost(a));
	CHECK(cudaFreeHost(b));
	CHECK(cudaFree(device));
	printf("copies\n");
}

static void
test_registered(cudaStream_t stream)
{
	const int count = 3001;
	std::vector<int> memory(count + 3);
	int *host = memory.data() + 3, *device, *out = app_malloc<int>(count);
	std::vector<int> seen(count);

	CHECK(cudaHostRegister(host, count * sizeof(int), cudaHostRegisterMapped));
	for (int i = 0; i < count; i++)
		host[i] = i;
	device = on_device(host);
	stencil<<<(count + 127) / 128, 128, 0, stream>>>(device, out, count);
	CHECK(cudaMemcpyAsync(device, out, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 1; i + 1 < count; i++)
		REQUIRE(host[i] == 4 * i);
	REQUIRE(memory[2] == 0);
	CHECK(cudaMemcpy(seen.data(), host, count * sizeof(int), cudaMemcpyHostToHost));
	REQUIRE(seen[10] == 40);
	/* With the program's address. */
	stencil<<<(count + 127) / 128, 128, 0, stream>>>(out, host, count);
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 2; i + 2 < count; i++)
		REQUIRE(host[i] == 16 * i);
	CHECK(cudaHostUnregister(host));
	CHECK(cudaFree(out));
	printf("registered\n");
}

static void
test_table(cudaStream_t stream)
{
	const int count = 50, times = 400;
	int *blocks[count], **table = app_malloc<int *>(count * times);
	std::vector<int *> many;

	for (int i = 0; i < count; i++) {
		CHECK(cudaMallocHost(&blocks[i], sizeof(int) * (i + 1)));
		*blocks[i] = i;
	}
	CHECK(cudaMemcpy(table, blocks, sizeof(blocks) / 2, cudaMemcpyHostToDevice));
	add<<<1, 1, 0, stream>>>(table, count / 2, 100);
	CHECK(cudaStreamSynchronize(stream));
	/* And in a table of 160 KB, most of whose addresses are repeated. */
	for (int i = 0; i < count * times; i++)
		many.push_back(blocks[i / times]);
	CHECK(cudaMemcpy(table, many.data(), many.size() * sizeof(int *), cudaMemcpyHostToDevice));
	add<<<1, 1, 0, stream>>>(table, count * times, 1);
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < count; i++) {
		REQUIRE(*blocks[i] == i + times + (i < count / 2 ? 100 : 0));
		CHECK(cudaFreeHost(blocks[i]));
	}
	CHECK(cudaFree(table));
	printf("addresses in a table\n");
}

struct seen {
	int *word;
	int value;
};

static void
note_word(void *arg)
{
	struct seen *seen = (struct seen *)arg;

	seen->value = *seen->word;
}

static void
test_function(cudaStream_t stream)
{
	struct seen seen = {};
	int *data;

	CHECK(cudaMallocHost(&data, 2 * sizeof(int)));
	data[1] = 0;
	seen.word = &data[1];
	publish<<<1, 1, 0, stream>>>(data, 1, data + 1, 7);
	CHECK(cudaLaunchHostFunc(stream, note_word, &seen));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(seen.value == 7);
	CHECK(cudaFreeHost(data));
	printf("host function\n");
}

static void
test_graph(cudaStream_t stream)
{
	int *data, *flag;
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaMallocHost(&data, 64));
	CHECK(cudaMallocHost(&flag, 64));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	stencil<<<1, 16, 0, stream>>>(data, flag, 16);
	CHECK(cudaMemcpyAsync(data, flag, 64, cudaMemcpyDefault, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 16; i++)
		data[i] = 1;
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(flag[8] == 16 && data[8] == 16);
	data[8] = 0;
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(flag[8] == 32);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFreeHost(data));
	CHECK(cudaFreeHost(flag));
	printf("graph\n");
}

static void
test_sizes(cudaStream_t stream)
{
	const size_t sizes[] = { 1, 4096, 1 << 20, (1 << 20) + 1, 5 << 20, 33 << 20 };

	for (int turn = 0; turn < 3; turn++) {
		for (size_t size : sizes) {
			char *host, *device = app_malloc<char>(size);

			CHECK(cudaMallocHost(&host, size));
			memset(host, turn + 1, size);
			CHECK(cudaMemcpyAsync(device, host, size, cudaMemcpyDefault, stream));
			CHECK(cudaMemsetAsync(device, 9, 1, stream));
			CHECK(cudaMemcpyAsync(host, device, size, cudaMemcpyDefault, stream));
			CHECK(cudaStreamSynchronize(stream));
			REQUIRE(host[0] == 9 && (size == 1 || host[size - 1] == turn + 1));
			CHECK(cudaFreeHost(host));
			CHECK(cudaFree(device));
		}
	}
	printf("sizes\n");
}

/* Numbers that equal addresses of memory which another thread frees at the same time. */
static void
test_numbers()
{
	std::atomic<int *> shown(nullptr);
	std::atomic<bool> over(false);
	std::vector<std::thread> threads;

	for (int t = 0; t < 3; t++) {
		threads.emplace_back([&] {
			std::vector<int *> numbers(512);
			int **device = app_malloc<int *>(numbers.size());

			while (!over) {
				numbers.assign(numbers.size(), shown);
				CHECK(cudaMemcpy(device, numbers.data(), 512 * sizeof(int *),
						 cudaMemcpyHostToDevice));
			}
			CHECK(cudaFree(device));
		});
	}
	for (int turn = 0; turn < 100; turn++) {
		int *host;

		CHECK(cudaMallocHost(&host, 4096));
		shown = host;
		usleep(1000);
		CHECK(cudaFreeHost(host));
	}
	over = true;
	for (auto &thread : threads)
		thread.join();
	printf("numbers\n");
}

/* Until the process is killed. */
static void
wait_for_ever(cudaStream_t stream)
{
	int *flag, *there = app_malloc<int>(1);

	CHECK(cudaMallocHost(&flag, sizeof(int)));
	*flag = 0;
	await<<<1, 1, 0, stream>>>(flag, 1, flag, there);
	REQUIRE(cudaStreamQuery(stream) == cudaErrorNotReady);
	printf("waiting\n");
	fflush(stdout);
	CHECK(cudaStreamSynchronize(stream));
}

int
main(int argc, char **argv)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	if (argc > 1 && strcmp(argv[1], "wait") == 0)
		wait_for_ever(stream);
	test_stencil();
	test_flags(stream);
	test_copies(stream);
	test_registered(stream);
	test_table(stream);
	test_function(stream);
	test_graph(stream);
	test_sizes(stream);
	test_numbers();
	CHECK(cudaStreamDestroy(stream));
	return app_ok("zerocopy");
}
