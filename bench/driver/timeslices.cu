/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How several processes share a GPU in turns when each of them launches small kernels, copies a
 * result to the host and waits for it, by the way in which it learns of the end:
 *
 *   timeslices [PROCESSES [SECONDS [KERNELS]]]
 *       Steps per second of all processes together. The end of a step is found by
 *       cuStreamSynchronize(), by a value that the stream writes, by an event that is queried, by
 *       the copied result itself, or the result is copied by a kernel instead of the copy engine.
 *
 * A value that the stream writes after a copy makes the compute engine wait for the copy engine,
 * and a context that waits keeps its time slice.
 */
#include "measure.h"

#include <cstdint>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX 32

enum mode {
	SYNCHRONIZE,
	VALUE,
	EVENT,
	RESULT,
	KERNEL_AND_VALUE,
	KERNEL_AND_FLAG,
	CLOCKS,
	MODES,
};

static const char *const names[MODES] = {
	"copy, cuStreamSynchronize()",
	"copy, value written by the stream",
	"copy, event queried",
	"copy, result polled",
	"kernel copies, value written",
	"kernel copies and writes a flag",
	"the second, with a clock read by a kernel before and after",
};

static struct shared {
	pthread_barrier_t barrier;
	double steps[MODES][PROCESSES_MAX];
} * shared;

static __global__ void
work(float *data, int rounds)
{
	float value = data[threadIdx.x];

	for (int i = 0; i < rounds; i++)
		value = value * 1.000001f + 0.5f;
	data[threadIdx.x] = value;
}

static __global__ void
count_up(uint32_t *result)
{
	++*result;
}

static __global__ void
copy(const uint32_t *from, volatile uint32_t *to, volatile uint32_t *flag, uint32_t value)
{
	*to = *from;
	if (flag) {
		__threadfence_system();
		*flag = value;
	}
}

static __global__ void
read_clock(volatile uint64_t *to)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	*to = now;
}

struct process {
	cudaStream_t stream;
	cudaEvent_t event;
	float *data;
	uint32_t *result;        /* of the device */
	volatile uint32_t *host; /* [0]: the result, [16]: the value, [32]: clocks */
	uint32_t expected;
	int kernels;
};

static void
await(volatile uint32_t *word, uint32_t value)
{
	while (*word != value)
		;
	__sync_synchronize();
}

static void
step(struct process *p, int mode)
{
	uint32_t *host = const_cast<uint32_t *>(p->host);

	p->expected++;
	if (mode == CLOCKS)
		read_clock<<<1, 1, 0, p->stream>>>(reinterpret_cast<uint64_t *>(host + 32));
	for (int i = 0; i < p->kernels; i++)
		work<<<16, 128, 0, p->stream>>>(p->data, 400);
	count_up<<<1, 1, 0, p->stream>>>(p->result);
	if (mode == KERNEL_AND_VALUE || mode == KERNEL_AND_FLAG)
		copy<<<1, 1, 0, p->stream>>>(p->result, host,
					     mode == KERNEL_AND_FLAG ? host + 16 : nullptr,
					     p->expected);
	else
		CHECK(cudaMemcpyAsync(host, p->result, 4, cudaMemcpyDeviceToHost, p->stream));
	if (mode == CLOCKS)
		read_clock<<<1, 1, 0, p->stream>>>(reinterpret_cast<uint64_t *>(host + 34));
	if (mode == VALUE || mode == KERNEL_AND_VALUE || mode == CLOCKS)
		CHECK(cuStreamWriteValue32(p->stream, reinterpret_cast<CUdeviceptr>(host + 16),
					   p->expected, 0));
	if (mode == EVENT)
		CHECK(cudaEventRecord(p->event, p->stream));
	if (mode == SYNCHRONIZE)
		CHECK(cudaStreamSynchronize(p->stream));
	else if (mode == EVENT)
		while (cudaEventQuery(p->event) == cudaErrorNotReady)
			;
	else
		await(mode == RESULT ? p->host : p->host + 16, p->expected);
	if (p->host[0] != p->expected) {
		fprintf(stderr, "%s: result %u instead of %u\n", names[mode], p->host[0],
			p->expected);
		exit(1);
	}
}

static int
run(int number, double seconds, int kernels)
{
	struct process p = {};

	p.kernels = kernels;
	CHECK(cudaStreamCreateWithFlags(&p.stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&p.event, cudaEventDisableTiming));
	CHECK(cudaMalloc(&p.data, 4096));
	CHECK(cudaMalloc(&p.result, 4));
	CHECK(cudaMemset(p.result, 0, 4));
	CHECK(cudaHostAlloc(const_cast<uint32_t **>(&p.host), 4096, cudaHostAllocMapped));
	for (int mode = 0; mode < MODES; mode++) {
		double begin, count = 0;

		for (int i = 0; i < 20; i++)
			step(&p, mode);
		pthread_barrier_wait(&shared->barrier);
		for (begin = now_us(); now_us() - begin < seconds * 1e6; count++)
			step(&p, mode);
		shared->steps[mode][number] = count / (now_us() - begin) * 1e6;
		pthread_barrier_wait(&shared->barrier);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	int processes = argc > 1 ? atoi(argv[1]) : 4, failed = 0;
	double seconds = argc > 2 ? atof(argv[2]) : 2;
	int kernels = argc > 3 ? atoi(argv[3]) : 50;
	pthread_barrierattr_t attributes;

	if (processes < 1 || processes > PROCESSES_MAX) {
		fprintf(stderr, "usage: timeslices [PROCESSES (1 to %d) [SECONDS [KERNELS]]]\n",
			PROCESSES_MAX);
		return 2;
	}
	shared = static_cast<struct shared *>(mmap(nullptr, sizeof(*shared), PROT_READ | PROT_WRITE,
						   MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	pthread_barrierattr_init(&attributes);
	pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attributes, (unsigned int)processes);
	for (int i = 0; i < processes; i++) {
		if (fork() == 0)
			return run(i, seconds, kernels);
	}
	for (int i = 0; i < processes; i++) {
		int status;

		wait(&status);
		failed |= status;
	}
	for (int mode = 0; mode < MODES && !failed; mode++) {
		double sum = 0;

		for (int i = 0; i < processes; i++)
			sum += shared->steps[mode][i];
		printf("%-60s %8.0f steps/s\n", names[mode], sum);
	}
	return failed != 0;
}
