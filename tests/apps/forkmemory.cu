/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a forked child reads without using CUDA: managed memory that the device has changed
 * or that was never used, variables, pinned and registered memory. The parent continues, also while
 * a kernel waits for it.
 */
#include "app.h"

#include <sys/wait.h>
#include <unistd.h>

static const int count = 300000;

static __managed__ int variable[1000];

static __global__ void
multiply(int *data, int count, int by)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		data[i] = i * by;
}

static __global__ void
await(volatile int *flag, int *answer)
{
	while (*flag == 0)
		continue;
	*answer = *flag + 1;
}

static bool
holds(const int *data, int count, int by)
{
	for (int i = 0; i < count; i++) {
		if (data[i] != i * by)
			return false;
	}
	return true;
}

struct memory {
	int *changed, *here, *unused, *pinned, *mapped, *registered;
};

/* The child now has its own copy. If the driver migrates pages itself, a child does not have
 * them. */
static int
child(const memory &all, bool has_managed)
{
	if (has_managed) {
		if (!holds(all.changed, count, 3) || !holds(variable, 1000, 5))
			return 2;
		if (!holds(all.here, count, 7) || !holds(all.unused, count, 0))
			return 3;
		for (int i = 0; i < count; i++)
			all.changed[i] = all.here[i] = all.unused[i] = -1;
		if (all.changed[count - 1] != -1)
			return 4;
	}
	if (!holds(all.pinned, count, 11) || !holds(all.mapped, count, 13) ||
	    !holds(all.registered, count, 17))
		return 5;
	return 42;
}

static void
fork_once(const memory &all, bool has_managed)
{
	int status;

	fflush(stdout);
	pid_t pid = fork();
	REQUIRE(pid >= 0);
	if (pid == 0)
		_exit(child(all, has_managed));
	REQUIRE(waitpid(pid, &status, 0) == pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 42)
		printf("the child's status: %#x\n", status);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

static void
expect_unchanged(const memory &all)
{
	REQUIRE(holds(all.changed, count, 3) && holds(all.here, count, 7));
	REQUIRE(holds(all.pinned, count, 11) && holds(all.mapped, count, 13));
	REQUIRE(holds(all.registered, count, 17));
}

/* Managed memory that the host touched last cannot be transferred to the device in the meantime. */
static void
while_a_kernel_waits(const memory &all, bool has_managed)
{
	int *flag;

	CHECK(cudaHostAlloc(&flag, 2 * sizeof(int), cudaHostAllocMapped));
	flag[0] = flag[1] = 0;
	multiply<<<8, 128>>>(all.changed, count, 3);
	CHECK(cudaDeviceSynchronize());
	await<<<1, 1>>>(flag, flag + 1);
	CHECK(cudaGetLastError());
	fork_once(all, has_managed);
	__atomic_store_n(flag, 5, __ATOMIC_RELEASE);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(flag[1] == 6);
	CHECK(cudaFreeHost(flag));
}

int
main()
{
	const size_t size = count * sizeof(int);
	std::vector<int> own(count);
	memory all = {};
	int concurrent;

	CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	CHECK(cudaMallocManaged(&all.changed, size));
	CHECK(cudaMallocManaged(&all.here, size));
	CHECK(cudaMallocManaged(&all.unused, size));
	CHECK(cudaMallocHost(&all.pinned, size));
	CHECK(cudaHostAlloc(&all.mapped, size, cudaHostAllocMapped));
	CHECK(cudaHostRegister(own.data(), size, cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer(&all.registered, own.data(), 0));
	multiply<<<8, 128>>>(all.changed, count, 3);
	multiply<<<8, 128>>>(variable, 1000, 5);
	multiply<<<8, 128>>>(all.mapped, count, 13);
	multiply<<<8, 128>>>(all.registered, count, 17);
	CHECK(cudaMemset(all.unused, 0, size));
	CHECK(cudaMemcpy(all.pinned, all.unused, size, cudaMemcpyDeviceToHost));
	CHECK(cudaDeviceSynchronize());
	all.registered = own.data();
	for (int i = 0; i < count; i++) {
		all.here[i] = i * 7;
		all.pinned[i] = i * 11;
	}
	fork_once(all, !concurrent);
	printf("a child reads what was there\n");
	expect_unchanged(all);
	printf("the parent goes on\n");
	while_a_kernel_waits(all, !concurrent);
	expect_unchanged(all);
	printf("so it does while a kernel waits\n");
	CHECK(cudaHostUnregister(own.data()));
	return app_ok("forkmemory");
}
