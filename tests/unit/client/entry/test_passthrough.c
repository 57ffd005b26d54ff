/* SPDX-License-Identifier: Apache-2.0 */
/* The library as a program loads it; each test in a process of its own, for it stays loaded. */
#include "tests/test.h"

#include <cuda.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef CUresult (*cu_init)(unsigned int flags);
typedef CUresult (*cu_number)(int *number);

static void *library;

static void *
function(const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		_exit(99);
	return found;
}

static CUresult
call_init(unsigned int flags)
{
	cu_init init;

	*(void **)&init = function("cuInit");
	return init(flags);
}

static CUresult
call_number(const char *name, int *number_p)
{
	cu_number call;

	*(void **)&call = function(name);
	return call(number_p);
}

/* Runs check() in a child with the library loaded; it returns the child's exit status. */
static int
in_child(const char *remote, const char *library_path, int (*check)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (remote)
			(void)setenv("REMOTE_GPU", remote, 1);
		else
			(void)unsetenv("REMOTE_GPU");
		(void)unsetenv("GPUPOOL_LOG");
		(void)setenv("LD_LIBRARY_PATH", library_path, 1);
		library = dlopen(getenv("GP_TEST_LIBCUDA"), RTLD_NOW);
		_exit(library ? check() : 98);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
calls_reach_the_other_driver(void)
{
	int count = 0;

	if (call_init(0) != CUDA_SUCCESS || call_init(4711) != CUDA_ERROR_STUB_LIBRARY)
		return 1;
	return call_number("cuDeviceGetCount", &count) != CUDA_SUCCESS || count != 42;
}

static int
missing_functions_are_not_supported(void)
{
	int number;

	return call_number("cuCtxGetDevice", &number) != CUDA_ERROR_NOT_SUPPORTED;
}

static int
there_is_no_device(void)
{
	int number = 0;

	/* This machine has a driver of its own, in one of the usual places. */
	if (call_number("cuDeviceGetCount", &number) != CUDA_ERROR_NOT_INITIALIZED)
		return 77;
	if (call_init(0) != CUDA_ERROR_NO_DEVICE || call_init(1) != CUDA_ERROR_INVALID_VALUE)
		return 1;
	return call_number("cuDriverGetVersion", &number) != CUDA_SUCCESS || number != CUDA_VERSION;
}

static int
the_daemon_cannot_be_had(void)
{
	int number = 0;

	/* The library's messages do not belong in the output of this test. */
	if (!freopen("/dev/null", "w", stderr))
		return 97;
	if (call_init(0) != CUDA_ERROR_SYSTEM_NOT_READY)
		return 1;
	if (call_number("cuDriverGetVersion", &number) != CUDA_SUCCESS || number != CUDA_VERSION)
		return 2;
	return call_number("cuDeviceGetCount", &number) != CUDA_ERROR_NOT_INITIALIZED;
}

UNIT_TEST(without_a_daemon_all_calls_go_to_the_machines_driver)
{
	const char *driver = getenv("GP_TEST_DRIVER_PATH");

	assert_int_equal(in_child(NULL, driver, calls_reach_the_other_driver), 0);
	assert_int_equal(in_child("", driver, calls_reach_the_other_driver), 0);
}

UNIT_TEST(what_the_machines_driver_lacks_is_not_supported)
{
	assert_int_equal(
		in_child(NULL, getenv("GP_TEST_DRIVER_PATH"), missing_functions_are_not_supported),
		0);
}

UNIT_TEST(without_daemon_and_driver_there_is_no_device)
{
	int status = in_child(NULL, "/nowhere", there_is_no_device);

	if (status == 77)
		LEAVE("this machine has a driver");
	assert_int_equal(status, 0);
}

UNIT_TEST(another_copy_of_the_library_is_no_driver)
{
	char folder[] = "/tmp/gpupool-test-XXXXXX", path[PATH_MAX], command[2 * PATH_MAX];
	int status;

	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
	(void)snprintf(command, sizeof(command), "cp '%s' '%s'", getenv("GP_TEST_LIBCUDA"), path);
	assert_int_equal(system(command), 0);
	status = in_child(NULL, folder, there_is_no_device);
	(void)unlink(path);
	(void)rmdir(folder);

	if (status == 77)
		LEAVE("this machine has a driver");
	assert_int_equal(status, 0);
}

UNIT_TEST(the_named_daemon_goes_before_the_machines_driver)
{
	const char *driver = getenv("GP_TEST_DRIVER_PATH");

	assert_int_equal(in_child("127.0.0.1:1", driver, the_daemon_cannot_be_had), 0);
	assert_int_equal(in_child("carrier-pigeon://x", driver, the_daemon_cannot_be_had), 0);
	assert_int_equal(in_child("a,b", driver, the_daemon_cannot_be_had), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
