/* SPDX-License-Identifier: Apache-2.0 */
/* Small programs, each with another style of using host memory that kernels access. */
#include "app.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>

/* Words that the other side writes at the same time. */
static int
load(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void
store(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void
wait_for(const int *word, int value)
{
	time_t end = time(NULL) + 100;

	while (load(word) < value) {
		REQUIRE(time(NULL) < end);
		(void)usleep(20);
	}
}

static __device__ void
await(const volatile int *word, int value)
{
	while (*word < value)
		continue;
	__threadfence_system();
}

template <typename T>
static T *
mapped(size_t count, unsigned int flags = cudaHostAllocMapped)
{
	T *host = nullptr;

	CHECK(cudaHostAlloc(&host, count * sizeof(T), flags));
	memset((void *)host, 0, count * sizeof(T));
	return host;
}

/* Jacobi's method between two mapped grids, without copies. */
static __global__ void
relax(const float *from, float *to, int size)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x > 0 && y > 0 && x + 1 < size && y + 1 < size)
		to[y * size + x] = 0.25f * (from[y * size + x - 1] + from[y * size + x + 1] +
					    from[(y - 1) * size + x] + from[(y + 1) * size + x]);
	else if (x < size)
		to[y * size + x] = from[y * size + x];
}

static void
zero_copy_stencil()
{
	const int size = 48;
	float *a = mapped<float>(size * size), *b = mapped<float>(size * size);
	std::vector<float> model(size * size), next(size * size);

	for (int x = 0; x < size; x++)
		a[x] = model[x] = 100;
	for (int turn = 0; turn < 6; turn++) {
		relax<<<dim3(1, size), 64>>>(a, b, size);
		next = model;
		for (int y = 1; y + 1 < size; y++)
			for (int x = 1; x + 1 < size; x++)
				next[y * size + x] =
					0.25f *
					(model[y * size + x - 1] + model[y * size + x + 1] +
					 model[(y - 1) * size + x] + model[(y + 1) * size + x]);
		model.swap(next);
		std::swap(a, b);
	}
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < size * size; i++)
		REQUIRE(a[i] == model[i]);
	CHECK(cudaFreeHost(a));
	CHECK(cudaFreeHost(b));
	printf("zero-copy stencil\n");
}

/* A kernel that keeps running and executes commands: a command word, followed by arguments. */
struct mailbox {
	int command;
	int unused[15];
	int arguments[16];
	int done;
	int unused_too[15];
	int result[16];
};

static __global__ void
serve(volatile mailbox *box)
{
	for (int turn = 1;; turn++) {
		int sum = 0;

		await(&box->command, turn);
		if (box->arguments[0] < 0)
			break;
		for (int i = 0; i < 16; i++) {
			sum += box->arguments[i];
			box->result[i] = sum;
		}
		__threadfence_system();
		box->done = turn;
	}
}

static void
persistent_kernel(cudaStream_t stream)
{
	mailbox *box = mapped<mailbox>(1);

	serve<<<1, 1, 0, stream>>>(box);
	for (int turn = 1; turn <= 25; turn++) {
		for (int i = 0; i < 16; i++)
			box->arguments[i] = turn * i + 1;
		store(&box->command, turn);
		wait_for(&box->done, turn);
		for (int i = 0, sum = 0; i < 16; i++) {
			sum += turn * i + 1;
			REQUIRE(box->result[i] == sum);
		}
	}
	for (int i = 0; i < 16; i++)
		box->arguments[i] = -1;
	store(&box->command, 26);
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaFreeHost(box));
	printf("persistent kernel\n");
}

/* Rings of entries of four words, in each direction, with counters in their own buffers. */
struct entry {
	int words[4];
};

static __global__ void
pipe(volatile entry *in, volatile int *in_head, volatile int *in_tail, volatile entry *out,
     volatile int *out_head, const volatile int *out_tail, int size, int total)
{
	for (int at = 0; at < total; at++) {
		int next[4];

		await(in_head, at + 1);
		for (int i = 0; i < 4; i++)
			next[i] = in[at % size].words[i];
		__threadfence_system();
		*in_tail = at + 1;
		await(out_tail, at + 1 - size);
		for (int i = 0; i < 4; i++)
			out[at % size].words[i] = 2 * next[i] + i;
		__threadfence_system();
		*out_head = at + 1;
	}
}

static void
ring_buffers(cudaStream_t stream)
{
	const int size = 16, total = 300;
	/* The counters are before the entries in memory, in the order of allocation. */
	int *in_head = mapped<int>(1), *in_tail = mapped<int>(1), *out_head = mapped<int>(1),
	    *out_tail = mapped<int>(1);
	entry *in = mapped<entry>(size), *out = mapped<entry>(size);

	pipe<<<1, 1, 0, stream>>>(in, in_head, in_tail, out, out_head, out_tail, size, total);
	std::thread producer([&] {
		for (int at = 0; at < total; at++) {
			wait_for(in_tail, at + 1 - size);
			for (int i = 0; i < 4; i++)
				in[at % size].words[i] = at * 10 + i;
			store(in_head, at + 1);
		}
	});
	for (int at = 0; at < total; at++) {
		wait_for(out_head, at + 1);
		for (int i = 0; i < 4; i++)
			REQUIRE(out[at % size].words[i] == 2 * (at * 10 + i) + i);
		store(out_tail, at + 1);
	}
	producer.join();
	CHECK(cudaStreamSynchronize(stream));
	for (void *memory : { (void *)in_head, (void *)in_tail, (void *)out_head, (void *)out_tail,
			      (void *)in, (void *)out })
		CHECK(cudaFreeHost(memory));
	printf("ring buffers\n");
}

static __global__ void
scale(double *data, int count, double by)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		data[i] *= by;
}

/* A vector that grows: registered, used, unregistered, and registered again. */
static void
registered_vector()
{
	std::vector<double> data;

	for (int turn = 1; turn <= 4; turn++) {
		double *device;

		data.resize(1000 * turn, 1);
		CHECK(cudaHostRegister(data.data(), data.size() * sizeof(double),
				       cudaHostRegisterMapped));
		CHECK(cudaHostGetDevicePointer(&device, data.data(), 0));
		scale<<<4, 64>>>(device, (int)data.size(), 2);
		CHECK(cudaDeviceSynchronize());
		data.front() += 1;
		scale<<<4, 64>>>(data.data(), (int)data.size(), 0.5);
		scale<<<4, 64>>>(device, (int)data.size(), 4);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(data.back() == 4);
		CHECK(cudaHostUnregister(data.data()));
	}
	REQUIRE(data[999] == 256 && data[3999] == 4);
	printf("registered vector\n");
}

static __global__ void
multiply(const int *in, const int *factor, int *out, int count)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		out[i] = in[i] * *factor;
}

/* Its inputs change between launches, its nodes do not. */
static void
graph_over_mapped(cudaStream_t stream)
{
	const int count = 500;
	int *in = mapped<int>(count), *factor = mapped<int>(1), *middle = app_malloc<int>(count),
	    *out = mapped<int>(count);
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	multiply<<<1, 64, 0, stream>>>(in, factor, middle, count);
	multiply<<<1, 64, 0, stream>>>(middle, factor, out, count);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int turn = 1; turn <= 5; turn++) {
		*factor = turn;
		for (int i = 0; i < count; i++)
			in[i] = i + turn;
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < count; i++)
			REQUIRE(out[i] == (i + turn) * turn * turn);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(middle));
	for (int *memory : { in, factor, out })
		CHECK(cudaFreeHost(memory));
	printf("graph\n");
}

static __global__ void
count_bytes(const unsigned char *text, size_t size, unsigned int *counts)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < size;
	     i += (size_t)gridDim.x * blockDim.x)
		atomicAdd(&counts[text[i]], 1);
}

/* The device's atomic operations, on write-combined input of an odd size. */
static void
histogram()
{
	const size_t size = 20001;
	unsigned char *text =
		mapped<unsigned char>(size, cudaHostAllocMapped | cudaHostAllocWriteCombined);
	unsigned int *counts = mapped<unsigned int>(256), sum = 0;
	std::vector<unsigned int> model(256);

	for (size_t i = 0; i < size; i++) {
		text[i] = (unsigned char)(i * i / 7);
		model[(unsigned char)(i * i / 7)]++;
	}
	count_bytes<<<4, 64>>>(text, size, counts);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 256; i++) {
		REQUIRE(counts[i] == model[i]);
		sum += counts[i];
	}
	REQUIRE(sum == size);
	CHECK(cudaFreeHost(text));
	CHECK(cudaFreeHost(counts));
	printf("histogram\n");
}

static __global__ void
work_until(const volatile int *stop, volatile int *progress, volatile long long *sum)
{
	for (int i = 1; *stop == 0; i++) {
		*sum += i;
		__threadfence_system();
		*progress = i;
	}
}

/* The program monitors the progress of a kernel and stops it. */
static void
progress_and_stop(cudaStream_t stream)
{
	int *stop = mapped<int>(1), *progress = mapped<int>(1), seen = 0;
	long long *sum = mapped<long long>(1);

	work_until<<<1, 1, 0, stream>>>(stop, progress, sum);
	for (int i = 0; i < 20; i++) {
		int now;

		wait_for(progress, seen + 1);
		now = load(progress);
		REQUIRE(now > seen);
		seen = now;
	}
	store(stop, 1);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*progress >= seen && *sum == (long long)*progress * (*progress + 1) / 2);
	CHECK(cudaFreeHost(stop));
	CHECK(cudaFreeHost(progress));
	CHECK(cudaFreeHost(sum));
	printf("progress and stop\n");
}

struct job {
	const int *input;
	int *output;
	int count;
};

static __global__ void
prefix_sums(const job *jobs)
{
	const job *one = &jobs[blockIdx.x];
	int sum = 0;

	for (int i = 0; i < one->count; i++)
		one->output[i] = sum += one->input[i];
}

/* Structs in mapped memory that point to mapped memory. */
static void
pointers_in_structs()
{
	const int number = 12;
	job *jobs = mapped<job>(number);

	for (int i = 0; i < number; i++) {
		int *input = mapped<int>(10 * i + 1);

		for (int k = 0; k <= 10 * i; k++)
			input[k] = i + k;
		jobs[i] = { input, mapped<int>(10 * i + 1), 10 * i + 1 };
	}
	prefix_sums<<<number, 1>>>(jobs);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < number; i++) {
		int last = 10 * i;

		REQUIRE(jobs[i].output[last] == i * (last + 1) + last * (last + 1) / 2);
		CHECK(cudaFreeHost((void *)jobs[i].input));
		CHECK(cudaFreeHost(jobs[i].output));
	}
	CHECK(cudaFreeHost(jobs));
	printf("pointers in structs\n");
}

struct element {
	element *next;
	int value;
};

static __global__ void
sum_list(const element *first, int *sum)
{
	*sum = 0;
	for (const element *one = first; one; one = one->next)
		*sum += one->value;
}

/* Adds up `count` lists, each as soon as its address is written to `lists`. */
static __global__ void
sum_lists(element *volatile *lists, volatile int *sums, int count)
{
	for (int i = 0; i < count; i++) {
		const element *one;

		while (!(one = lists[i]))
			continue;
		__threadfence_system();
		int sum = 0;
		for (; one; one = one->next)
			sum += one->value;
		sums[i] = sum;
	}
}

static element *
new_element(element *next, int value)
{
	element *one = mapped<element>(1, cudaHostAllocDefault);

	*one = { next, value };
	return one;
}

static void
free_list(element *first)
{
	while (first) {
		element *next = first->next;

		CHECK(cudaFreeHost(first));
		first = next;
	}
}

/* Each element is an allocation whose address is stored only in another element. */
static void
lists_of_pinned_elements(cudaStream_t stream)
{
	const int count = 2000, lists = 8;
	int *sum = mapped<int>(1), *sums = mapped<int>(lists);
	element **heads = mapped<element *>(lists), *first = nullptr;

	for (int i = 0; i < count; i++)
		first = new_element(first, i);
	sum_list<<<1, 1, 0, stream>>>(first, sum);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*sum == count * (count - 1) / 2);
	/* Again, with a new element between those that the device has seen. */
	first->next->next = new_element(first->next->next, 1000000);
	sum_list<<<1, 1, 0, stream>>>(first, sum);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*sum == count * (count - 1) / 2 + 1000000);
	/* Also for a running kernel. */
	sum_lists<<<1, 1, 0, stream>>>(heads, sums, lists);
	for (int i = 0; i < lists; i++) {
		element *list = nullptr;

		for (int k = 0; k <= i; k++)
			list = new_element(list, k + 1);
		__atomic_store_n(&heads[i], list, __ATOMIC_RELEASE);
		wait_for(&sums[i], 1);
	}
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < lists; i++) {
		REQUIRE(sums[i] == (i + 1) * (i + 2) / 2);
		free_list(heads[i]);
	}
	free_list(first);
	for (void *memory : { (void *)sum, (void *)sums, (void *)heads })
		CHECK(cudaFreeHost(memory));
	printf("lists of pinned elements\n");
}

static __global__ void
ping(volatile int *mine, const volatile int *other, int rounds)
{
	for (int round = 1; round <= rounds; round++) {
		*mine = round;
		await(other, round);
	}
}

/* Two kernels that wait for each other; the program forwards the words. */
static void
two_kernels()
{
	const int rounds = 15;
	int *words = mapped<int>(4 * 1024);
	cudaStream_t streams[2];

	for (int i = 0; i < 2; i++) {
		CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		ping<<<1, 1, 0, streams[i]>>>(words + i * 2048, words + i * 2048 + 1024, rounds);
	}
	for (int round = 1; round <= rounds; round++) {
		wait_for(&words[0], round);
		wait_for(&words[2048], round);
		store(&words[2048 + 1024], round);
		store(&words[1024], round);
	}
	for (int i = 0; i < 2; i++) {
		CHECK(cudaStreamSynchronize(streams[i]));
		CHECK(cudaStreamDestroy(streams[i]));
	}
	CHECK(cudaFreeHost(words));
	printf("two kernels\n");
}

static __global__ void
sum_buffers(const volatile int *const *buffers, const volatile int *full, volatile int *taken,
	    int count, int rounds, long long *total)
{
	for (int round = 0; round < rounds; round++) {
		await(&full[round % 2 * 32], round + 1);
		for (int i = 0; i < count; i++)
			*total += buffers[round % 2][i];
		taken[round % 2 * 32] = round + 1;
		__threadfence_system();
	}
}

/* The program fills one buffer while the kernel reads the other. The flags are before all buffers
 * in memory. */
static void
double_buffering(cudaStream_t stream)
{
	const int count = 3000, rounds = 12;
	int *full = mapped<int>(64), *taken = mapped<int>(64), **buffers = mapped<int *>(2);
	long long *total = mapped<long long>(1), expected = 0;

	for (int i = 0; i < 2; i++)
		buffers[i] = mapped<int>(count);
	sum_buffers<<<1, 1, 0, stream>>>(buffers, full, taken, count, rounds, total);
	for (int round = 0; round < rounds; round++) {
		wait_for(&taken[round % 2 * 32], round - 1);
		for (int i = 0; i < count; i++) {
			buffers[round % 2][i] = round * i + 1;
			expected += round * i + 1;
		}
		store(&full[round % 2 * 32], round + 1);
	}
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(*total == expected);
	for (void *memory : { (void *)buffers[0], (void *)buffers[1], (void *)buffers, (void *)full,
			      (void *)taken, (void *)total })
		CHECK(cudaFreeHost(memory));
	printf("double buffering\n");
}

#pragma pack(push, 1)
struct packed {
	char tag;
	const int *from;
	short shift;
	int *to;
	unsigned char count;
};
#pragma pack(pop)

static __constant__ packed constant;

static __global__ void
add_packed(char before, packed what, packed other)
{
	const packed &third = constant;

	for (int i = threadIdx.x; i < what.count; i += blockDim.x)
		what.to[i] = what.from[i] + what.shift + before + what.tag;
	for (int i = threadIdx.x; i < other.count; i += blockDim.x)
		other.to[i] = other.from[i] - other.shift;
	for (int i = threadIdx.x; i < third.count; i += blockDim.x)
		third.to[i] = third.from[i] * third.shift;
}

/* Addresses of pinned and of registered memory at any byte offset of parameters and of a
 * constant. */
static void
packed_structs()
{
	const int count = 200;
	int *memory[4];
	std::vector<int> from(count), to(count);

	for (auto &each : memory)
		CHECK(cudaMallocHost(&each, count * sizeof(int)));
	CHECK(cudaHostRegister(from.data(), count * sizeof(int), cudaHostRegisterDefault));
	CHECK(cudaHostRegister(to.data(), count * sizeof(int), cudaHostRegisterDefault));
	for (int i = 0; i < count; i++) {
		memory[0][i] = i;
		memory[2][i] = 2 * i;
		memory[1][i] = memory[3][i] = to[i] = -1;
		from[i] = 3 * i;
	}
	packed first = { 1, memory[0], 10, memory[1], count };
	packed second = { 2, from.data(), 20, to.data(), count };
	packed third = { 3, memory[2], 30, memory[3], count };
	CHECK(cudaMemcpyToSymbol(constant, &third, sizeof(third)));
	add_packed<<<1, 64>>>(5, first, second);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < count; i++) {
		REQUIRE(memory[1][i] == i + 16);
		REQUIRE(to[i] == 3 * i - 20);
		REQUIRE(memory[3][i] == 60 * i);
	}
	CHECK(cudaHostUnregister(from.data()));
	CHECK(cudaHostUnregister(to.data()));
	for (int *each : memory)
		CHECK(cudaFreeHost(each));
	printf("packed structs\n");
}

int
main()
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	zero_copy_stencil();
	persistent_kernel(stream);
	ring_buffers(stream);
	registered_vector();
	graph_over_mapped(stream);
	histogram();
	progress_and_stop(stream);
	pointers_in_structs();
	lists_of_pinned_elements(stream);
	two_kernels();
	double_buffering(stream);
	packed_structs();
	CHECK(cudaStreamDestroy(stream));
	return app_ok("mappedstyles");
}
