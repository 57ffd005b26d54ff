/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA in forked processes. It works if the parent has not used CUDA before; otherwise it fails. */
#include "app.h"

#include <sys/wait.h>
#include <unistd.h>

static __global__ void
answer(int *out)
{
	*out = 42;
}

static void
use_cuda()
{
	int *device = app_malloc<int>(1);

	answer<<<1, 1>>>(device);
	CHECK(cudaGetLastError());
	REQUIRE(app_download(device, 1)[0] == 42);
	CHECK(cudaFree(device));
}

static int
in_child(void (*work)())
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (child == 0) {
		work();
		fflush(stdout);
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void
expect_refusal()
{
	void *memory;
	cudaError_t error = cudaMalloc(&memory, 16);

	printf("malloc in a child: %s (%d)\n", cudaGetErrorName(error), (int)error);
	REQUIRE(error == cudaErrorInitializationError);
}

int
main()
{
	REQUIRE(in_child(use_cuda) == 0);
	printf("a child works when the parent has not begun\n");
	use_cuda();
	REQUIRE(in_child(expect_refusal) == 0);
	/* The parent is not affected. */
	use_cuda();
	printf("the parent goes on\n");
	return app_ok("fork");
}
