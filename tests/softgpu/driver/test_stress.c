/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that come, work and are cut off in the middle, several at a time. */
#include "tests/softgpu/driver/common.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 4
#define ROUNDS 25
#define COUNT 1024

static CUcontext ctx;
static CUfunction add_one, spin;

struct client {
	CUstream streams[2];
	CUevent event;
	CUdeviceptr data;
	int *host;
};

#define must(call)                                                                                 \
	do {                                                                                       \
		if (call)                                                                          \
			return #call;                                                              \
	} while (0)

static const char *
open_client(struct client *client)
{
	for (unsigned int i = 0; i < 2; i++)
		must(cuStreamCreate(&client->streams[i], CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&client->event, CU_EVENT_DISABLE_TIMING));
	must(cuMemAlloc_v2(&client->data, COUNT * sizeof(int)));
	must(cuMemHostAlloc((void **)&client->host, COUNT * sizeof(int), 0));
	return NULL;
}

static const char *
launch(struct client *client, CUfunction function, CUstream stream)
{
	int n = COUNT;

	must(cuLaunchKernel(function, COUNT / 128, 1, 1, 128, 1, 1, 0, stream,
			    (void *[]){ &client->data, &n }, NULL));
	return NULL;
}

/* Both streams add, one after the other. */
static const char *
work(struct client *client)
{
	memset(client->host, 0, COUNT * sizeof(int));
	must(cuMemcpyHtoDAsync_v2(client->data, client->host, COUNT * sizeof(int),
				  client->streams[0]));
	for (unsigned int i = 0; i < 10; i++) {
		CUstream here = client->streams[i % 2], there = client->streams[(i + 1) % 2];

		must(launch(client, add_one, here));
		must(cuEventRecord(client->event, here));
		must(cuStreamWaitEvent(there, client->event, 0));
	}
	must(cuMemcpyDtoHAsync_v2(client->host, client->data, COUNT * sizeof(int),
				  client->streams[0]));
	must(cuStreamSynchronize(client->streams[0]));
	for (unsigned int i = 0; i < COUNT; i++)
		must(client->host[i] != 10);
	return NULL;
}

/* An endless kernel, with work of both streams after it. */
static const char *
be_cut_off(struct client *client)
{
	must(cuMemsetD8Async(client->data, 0, COUNT * sizeof(int), client->streams[0]));
	must(launch(client, spin, client->streams[0]));
	must(cuEventRecord(client->event, client->streams[0]));
	must(cuStreamWaitEvent(client->streams[1], client->event, 0));
	must(launch(client, add_one, client->streams[1]));
	must(gpSoftStreamCancel(client->streams[1]));
	must(gpSoftStreamCancel(client->streams[0]));
	return NULL;
}

static const char *
close_client(struct client *client)
{
	for (unsigned int i = 0; i < 2; i++)
		must(cuStreamDestroy_v2(client->streams[i]));
	must(cuEventDestroy_v2(client->event));
	must(cuMemFree_v2(client->data));
	must(cuMemFreeHost(client->host));
	return NULL;
}

static void *
clients(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	const char *failed = cuCtxSetCurrent(ctx) ? "cuCtxSetCurrent" : NULL;

	for (unsigned int i = 0; i < ROUNDS && !failed; i++) {
		struct client client;

		failed = open_client(&client);
		if (!failed)
			failed = work(&client);
		if (!failed && rand_r(&seed) % 3 == 0)
			failed = be_cut_off(&client);
		if (!failed)
			failed = close_client(&client);
	}
	return (void *)failed;
}

UNIT_TEST(clients_come_and_go_without_a_trace)
{
	pthread_t threads[THREADS];
	size_t before, after, total;

	gs_test_deadline(100);
	check(cuCtxGetCurrent(&ctx));
	add_one = gs_test_kernel("add_one");
	spin = gs_test_kernel("spin");
	check(cuMemGetInfo_v2(&before, &total));
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, clients, (void *)(i + 1)), 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		if (failed)
			fail_msg("%s", (const char *)failed);
	}
	check(cuMemGetInfo_v2(&after, &total));
	assert_int_equal(after, before);
}

UNIT_TEST_MAIN(gs_test_setup, gs_test_teardown)
