/* SPDX-License-Identifier: Apache-2.0 */
/* A driver that waits for running kernels when it loads code. */
#include "tests/softgpu/driver/common.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define MOMENT_USEC 100000

static CUfunction spin;
static CUkernel fresh;
static _Atomic int *word;

/* The work of a thread, and whether it is done. */
struct task {
	pthread_t thread;
	CUresult (*run)(void);
	CUcontext context;
	_Atomic bool done;
	CUresult result;
};

static void *
perform(void *arg)
{
	struct task *task = arg;

	task->result = cuCtxSetCurrent(task->context);
	if (task->result == CUDA_SUCCESS)
		task->result = task->run();
	task->done = true;
	return NULL;
}

static void
begin(struct task *task, CUresult (*run)(void))
{
	task->run = run;
	task->done = false;
	check(cuCtxGetCurrent(&task->context));
	assert_int_equal(pthread_create(&task->thread, NULL, perform, task), 0);
	usleep(MOMENT_USEC);
}

static void
end(struct task *task)
{
	pthread_join(task->thread, NULL);
	check(task->result);
}

static CUresult
launch_on(CUstream stream)
{
	CUdeviceptr address = (CUdeviceptr)(uintptr_t)word;
	void *params[] = { &address };

	return cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static CUresult
launch_elsewhere(void)
{
	return launch_on(gs_test_stream());
}

static CUresult
use_fresh(void)
{
	CUfunction function;

	return cuKernelGetFunction(&function, fresh);
}

static CUresult
unload_another(void)
{
	void *image = gs_test_file("kernels.fatbin", NULL);
	CUlibrary library;
	CUresult result = cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);

	free(image);
	return result == CUDA_SUCCESS ? cuLibraryUnload(library) : result;
}

static int
setup(void **state)
{
	CUdeviceptr memory;

	gs_test_deadline(50);
	if (gs_test_setup(state))
		return -1;
	spin = gs_test_kernel("spin");
	check(cuMemAlloc_v2(&memory, sizeof(int)));
	word = (_Atomic int *)(uintptr_t)memory;
	return 0;
}

UNIT_TEST(the_first_use_of_a_kernel_waits_and_lets_no_launch_pass)
{
	CUstream stream = gs_test_stream();
	struct task first, launch;

	check(cuLibraryGetKernel(&fresh, gs_test_library(), "add_one"));
	*word = 0;
	check(launch_on(stream));
	usleep(MOMENT_USEC);
	begin(&first, use_fresh);
	begin(&launch, launch_elsewhere);
	assert_false(first.done);
	assert_false(launch.done);

	*word = 1;
	end(&first);
	end(&launch);
	check(cuCtxSynchronize());
}

UNIT_TEST(a_kernel_that_was_used_is_there_at_once)
{
	CUstream stream = gs_test_stream();

	check(use_fresh());
	*word = 0;
	check(launch_on(stream));
	usleep(MOMENT_USEC);
	check(use_fresh());
	check_is(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	*word = 1;
	check(cuCtxSynchronize());
}

UNIT_TEST(unloading_waits)
{
	CUstream stream = gs_test_stream();
	struct task task;

	*word = 0;
	check(launch_on(stream));
	usleep(MOMENT_USEC);
	begin(&task, unload_another);
	assert_false(task.done);
	*word = 1;
	end(&task);
	check(cuCtxSynchronize());
}

int
main(void)
{
	(void)setenv("GPUPOOL_SOFT_LOADING_WAITS", "1", 1);
	return unit_tests_run(setup, gs_test_teardown);
}
