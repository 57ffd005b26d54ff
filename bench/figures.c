/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of calls and throughput of copies, on device 0, natively or through a daemon: figures
 * [NAME...], all if no name is given. Prints a figure per line: name, value, unit. Times are
 * medians of the samples that fit into a fifth of a second.
 */
#include "bench/bench_cuda.h"

#include <stdbool.h>
#include <string.h>

#define SECONDS 0.2
#define SAMPLES_MAX 5000
#define WARM_UP 3
#define LAUNCHES 5000
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define COPY_MAX (256 * MIB)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry empty()\n{\n\tret;\n}\n";

static CUfunction kernel;
static CUstream stream;
static CUevent done_event;
static CUdeviceptr device_memory;
static void *pinned, *pageable;
static char **names;
static int name_count;

static bool
is_wanted(const char *name)
{
	for (int i = 0; i < name_count; i++) {
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return name_count == 0;
}

/* Returns the median duration of does(), in seconds; before() is not measured. */
static double
measure(void (*before)(void), void (*does)(size_t), size_t argument)
{
	static double times[SAMPLES_MAX];
	double end = 0;
	int count = 0;

	for (int i = -WARM_UP; i < 3 || (now() < end && count < SAMPLES_MAX); i++) {
		double begin;

		if (before)
			before();
		begin = now();
		if (i == 0)
			end = begin + SECONDS;
		does(argument);
		if (i >= 0)
			times[count++] = now() - begin;
	}
	return median(times, (size_t)count);
}

static void
launch(size_t count)
{
	for (size_t i = 0; i < count; i++)
		must(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL),
		     "cuLaunchKernel");
}

static void
synchronize(size_t unused)
{
	(void)unused;
	must(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

static void
settle(void)
{
	synchronize(0);
}

static void
launch_and_synchronize(size_t count)
{
	launch(count);
	synchronize(0);
}

static void
query_done_event(size_t unused)
{
	(void)unused;
	must(cuEventQuery(done_event), "cuEventQuery");
}

static void
copy_in_pageable(size_t size)
{
	must(cuMemcpyHtoD(device_memory, pageable, size), "cuMemcpyHtoD");
}

static void
copy_out_pageable(size_t size)
{
	must(cuMemcpyDtoH(pageable, device_memory, size), "cuMemcpyDtoH");
}

static void
copy_in_pinned(size_t size)
{
	must(cuMemcpyHtoDAsync(device_memory, pinned, size, stream), "cuMemcpyHtoDAsync");
	synchronize(0);
}

static void
copy_out_pinned(size_t size)
{
	must(cuMemcpyDtoHAsync(pinned, device_memory, size, stream), "cuMemcpyDtoHAsync");
	synchronize(0);
}

static void
alloc_and_free(size_t size)
{
	CUdeviceptr memory;

	must(cuMemAlloc(&memory, size), "cuMemAlloc");
	must(cuMemFree(memory), "cuMemFree");
}

/* Frees a kernel's memory while the kernel runs. */
static void
alloc_launch_and_free(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		CUdeviceptr memory;

		must(cuMemAlloc(&memory, MIB), "cuMemAlloc");
		launch(1);
		must(cuMemFree(memory), "cuMemFree");
	}
}

/* The same while the program has pinned memory. */
static void
have_pinned(void)
{
	static void *block;

	if (!block)
		must(cuMemHostAlloc(&block, 4096, 0), "cuMemHostAlloc");
	settle();
}

static void
query_memory(size_t unused)
{
	size_t free_bytes, total;

	(void)unused;
	must(cuMemGetInfo(&free_bytes, &total), "cuMemGetInfo");
}

/* Microseconds for each of `per` operations. */
static const struct time_figure {
	const char *name;
	void (*before)(void);
	void (*does)(size_t);
	size_t argument, per;
} time_figures[] = {
	{ "launch_issue", settle, launch, 100, 100 },
	{ "launch_issue_5", settle, launch, 5, 5 },
	{ "launch_issue_1", settle, launch, 1, 1 },
	{ "launch_rate", settle, launch_and_synchronize, LAUNCHES, LAUNCHES },
	{ "launch_sync", NULL, launch_and_synchronize, 1, 1 },
	{ "sync_idle", NULL, synchronize, 0, 1 },
	{ "event_done", NULL, query_done_event, 0, 1 },
	{ "htod_4b", NULL, copy_in_pageable, 4, 1 },
	{ "dtoh_4b", NULL, copy_out_pageable, 4, 1 },
	{ "alloc_free_1m", NULL, alloc_and_free, MIB, 1 },
	{ "alloc_free_256m", NULL, alloc_and_free, 256 * MIB, 1 },
	{ "memory_info", NULL, query_memory, 0, 1 },
	{ "alloc_launch_free", settle, alloc_launch_and_free, 100, 100 },
	{ "alloc_launch_free_pinned", have_pinned, alloc_launch_and_free, 100, 100 },
};

static const struct {
	const char *name;
	void (*copy)(size_t);
} copies[] = {
	{ "htod_pageable", copy_in_pageable },
	{ "dtoh_pageable", copy_out_pageable },
	{ "htod_pinned", copy_in_pinned },
	{ "dtoh_pinned", copy_out_pinned },
};

static const struct {
	const char *name;
	size_t size;
} sizes[] = {
	{ "64k", 64 * KIB },
	{ "1m", MIB },
	{ "16m", 16 * MIB },
	{ "256m", 256 * MIB },
};

#define ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void
prepare(void)
{
	CUmodule module;

	use_device();
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&kernel, module, "empty"), "cuModuleGetFunction");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	must(cuEventCreate(&done_event, CU_EVENT_DEFAULT), "cuEventCreate");
	must(cuMemAlloc(&device_memory, COPY_MAX), "cuMemAlloc");
	pageable = malloc(COPY_MAX);
	if (!pageable)
		must(CUDA_ERROR_OUT_OF_MEMORY, "malloc");
	memset(pageable, 1, COPY_MAX);
	launch(1);
	must(cuEventRecord(done_event, stream), "cuEventRecord");
	synchronize(0);
	must(cuEventSynchronize(done_event), "cuEventSynchronize");
}

int
main(int argc, char **argv)
{
	char name[64];

	names = argv + 1;
	name_count = argc - 1;
	prepare();
	for (size_t i = 0; i < ARRAY_COUNT(time_figures); i++) {
		const struct time_figure *figure = &time_figures[i];
		double time;

		if (!is_wanted(figure->name))
			continue;
		time = measure(figure->before, figure->does, figure->argument);
		printf("%s %.4f us\n", figure->name, time * 1e6 / (double)figure->per);
		(void)fflush(stdout);
	}
	must(cuMemHostAlloc(&pinned, COPY_MAX, 0), "cuMemHostAlloc");
	memset(pinned, 1, COPY_MAX);
	for (size_t i = 0; i < ARRAY_COUNT(copies); i++) {
		for (size_t j = 0; j < ARRAY_COUNT(sizes); j++) {
			double time;

			(void)snprintf(name, sizeof(name), "%s_%s", copies[i].name, sizes[j].name);
			if (!is_wanted(name))
				continue;
			time = measure(NULL, copies[i].copy, sizes[j].size);
			printf("%s %.4f GB/s\n", name, (double)sizes[j].size / time / 1e9);
			(void)fflush(stdout);
		}
	}
	return 0;
}
