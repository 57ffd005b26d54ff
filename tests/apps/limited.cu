/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that restricts itself after it has begun to use the GPU. Existing objects continue to
 * work, and a request for new ones succeeds or returns an error. The library never ends the
 * program.
 *
 * limited network|sockets|threads|descriptors|files|open
 */
#include "app.h"

#include <cerrno>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const size_t size = 32 << 20, words = size / sizeof(int), block = 8 << 20;

static __global__ void
add(int *data, size_t count)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		data[i] += 1;
}

/* Makes these system calls fail with EPERM. */
static void
deny(std::initializer_list<long> calls)
{
	std::vector<sock_filter> filter;

	filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0));
	for (long call : calls) {
		filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)call, 0, 1));
		filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
	}
	filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));

	sock_fprog program = { (unsigned short)filter.size(), filter.data() };

	REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* Standard output may be a file. */
static void
limit_files(bool limited)
{
	rlimit files;

	REQUIRE(getrlimit(RLIMIT_FSIZE, &files) == 0);
	files.rlim_cur = limited ? 0 : files.rlim_max;
	REQUIRE(setrlimit(RLIMIT_FSIZE, &files) == 0);
}

static bool
limit(const char *what)
{
	rlimit none = {};

	if (strcmp(what, "network") == 0)
		return unshare(CLONE_NEWNET) == 0;
	if (strcmp(what, "sockets") == 0)
		deny({ SYS_socket, SYS_connect, SYS_socketpair });
	else if (strcmp(what, "threads") == 0)
		deny({ SYS_clone, SYS_clone3 });
	else if (strcmp(what, "descriptors") == 0)
		REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
	else if (strcmp(what, "files") == 0)
		limit_files(true);
	else
		deny({ SYS_openat, SYS_memfd_create });
	return true;
}

/* The memory exists, or the call has returned an error. */
static bool
got(cudaError_t error)
{
	(void)cudaGetLastError();
	return error == cudaSuccess;
}

/* A kernel changes data of the program, and the program sees the change. */
static void
use(int *memory, int seed)
{
	for (size_t i = 0; i < block / sizeof(int); i++)
		memory[i] = (int)i * seed;
	add<<<8, 128>>>(memory, block / sizeof(int));
	if (!got(cudaGetLastError()))
		return;
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < block / sizeof(int); i++)
		REQUIRE(memory[i] == (int)i * seed + 1);
}

static void
managed()
{
	int *memory;

	for (int round = 0; round < 3; round++) {
		if (!got(cudaMallocManaged(&memory, block)))
			return;
		use(memory, 3 + round);
		/* Written by the GPU only, in reused memory. */
		CHECK(cudaMemset(memory, round, block));
		REQUIRE(((unsigned char *)memory)[block / 2] == round);
		CHECK(cudaFree(memory));
		if (!got(cudaMallocManaged(&memory, block)))
			return;
		CHECK(cudaMemset(memory, 7 + round, block));
		REQUIRE(((unsigned char *)memory)[block - 1] == 7 + round);
		CHECK(cudaFree(memory));
	}
}

static void
pinned(int *device)
{
	int *memory;

	if (!got(cudaMallocHost(&memory, block)))
		return;
	use(memory, 5);
	CHECK(cudaMemcpyAsync(device, memory, block, cudaMemcpyHostToDevice, 0));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFreeHost(memory));
}

static void
registered()
{
	int *memory = (int *)aligned_alloc(4096, block);

	REQUIRE(memory);
	if (got(cudaHostRegister(memory, block, cudaHostRegisterMapped))) {
		use(memory, 9);
		CHECK(cudaHostUnregister(memory));
	}
	free(memory);
}

static void
set(void *data)
{
	*(int *)data = 1;
}

static void
host_function()
{
	static int called;

	/* Its thread may exceed the limit. */
	if (got(cudaLaunchHostFunc(0, set, &called))) {
		CHECK(cudaDeviceSynchronize());
		REQUIRE(called == 1);
	}
}

int
main(int argc, char **argv)
{
	std::vector<int> host(words);
	int *device;

	if (argc != 2)
		return 2;
	CHECK(cudaMalloc(&device, size));
	add<<<1, 1>>>(device, 1);
	CHECK(cudaDeviceSynchronize());
	if (!limit(argv[1])) {
		printf("skipped: %s\n", argv[1]);
		return 77;
	}
	for (size_t i = 0; i < words; i++)
		host[i] = (int)i;
	CHECK(cudaMemcpy(device, host.data(), size, cudaMemcpyHostToDevice));
	add<<<64, 256>>>(device, words);
	std::fill(host.begin(), host.end(), 0);
	CHECK(cudaMemcpy(host.data(), device, size, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < words; i++)
		REQUIRE(host[i] == (int)i + 1);
	managed();
	pinned(device);
	registered();
	host_function();
	add<<<1, 1>>>(device, 1);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(device));
	limit_files(false);
	return app_ok("limited");
}
