/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: the client library in use, in a child process. Its standard error is captured: the
 * library's messages there become the reasons in the lines of this test.
 */
#include "base/clock.h"
#include "cli/check.h"
#include "cli/library.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define SMALL (1 * MIB)
#define LARGE (64 * MIB)
/* If the small copy takes less than this, the large one takes about a second at most. */
#define FAST_NS UINT64_C(20000000)
#define TRIPS 50
#define SLOW_TRIP_MS 2.0
#define SESSION_TIMEOUT_S 90

/* Functions of the driver API that are used, with their exported names. */
#define FUNCTIONS(F)                                                                               \
	F(cuInit, (unsigned int flags))                                                            \
	F(cuDeviceGetCount, (int *count))                                                          \
	F(cuDeviceGet, (CUdevice * device, int ordinal))                                           \
	F(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                        \
	F(cuCtxSetCurrent, (CUcontext context))                                                    \
	F(cuMemGetInfo_v2, (size_t * left, size_t * total))                                        \
	F(cuMemAlloc_v2, (CUdeviceptr * address, size_t size))                                     \
	F(cuMemFree_v2, (CUdeviceptr address))                                                     \
	F(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size))                        \
	F(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size))

struct driver {
#define MEMBER(name, parameters) CUresult(*name##_) parameters;
	FUNCTIONS(MEMBER)
#undef MEMBER
};

/* Read end of the pipe that replaces standard error, and the original standard error. */
static int captured_fd = -1, stderr_fd = -1;

static void
stderr_capture(void)
{
	int ends[2];

	stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (stderr_fd < 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return;
	(void)dup2(ends[1], STDERR_FILENO);
	(void)close(ends[1]);
	captured_fd = ends[0];
}

/* Reads the last line that the library has written, without its prefix; "": none. */
static void
stderr_read_line(char *text, size_t size)
{
	char all[8192] = "", *line;
	ssize_t got = captured_fd >= 0 ? read(captured_fd, all, sizeof(all) - 1) : 0;

	all[got > 0 ? got : 0] = '\0';
	while ((line = strrchr(all, '\n')) && !line[1])
		*line = '\0';
	line = line ? line + 1 : all;
	if (strncmp(line, "gpupool: ", 9) == 0)
		line += 9;
	(void)snprintf(text, size, "%.*s", (int)size - 1, line);
}

/* Reports an error of a call, with the library's message. */
static void
call_failed(const char *subject, const char *call, CUresult result)
{
	char message[1024];

	stderr_read_line(message, sizeof(message));
	check_print(CHECK_ERROR, subject, "%s returns error %d%s%s", call, (int)result,
		    *message ? ": " : "", message);
}

static bool
driver_load(const struct cli_launch_env *launch_env, struct driver *driver)
{
	char path[GPC_POOL_PATH_MAX + 16];
	void *library;

	(void)snprintf(path, sizeof(path), "%s/" CLI_LIBRARY, launch_env->folder);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		check_print(CHECK_ERROR, "library", "%s; install the library that is missing",
			    dlerror());
		return false;
	}
#define FIND(name, parameters)                                                                     \
	*(void **)&driver->name##_ = dlsym(library, #name);                                        \
	if (!driver->name##_) {                                                                    \
		check_print(CHECK_ERROR, "library", "%s has no " #name, path);                     \
		return false;                                                                      \
	}
	FUNCTIONS(FIND)
#undef FIND
	check_print(CHECK_OK, "library", "%s", path);
	return true;
}

static bool
open_context(const struct driver *driver, int *count_p)
{
	uint64_t begin_ns = gp_now_ns();
	CUcontext context;
	CUdevice device;
	CUresult result = driver->cuInit_(0);

	if (result != CUDA_SUCCESS) {
		call_failed("session", "cuInit", result);
		return false;
	}
	result = driver->cuDeviceGetCount_(count_p);
	if (result == CUDA_SUCCESS)
		result = driver->cuDeviceGet_(&device, 0);
	if (result == CUDA_SUCCESS)
		result = driver->cuDevicePrimaryCtxRetain_(&context, device);
	if (result == CUDA_SUCCESS)
		result = driver->cuCtxSetCurrent_(context);
	if (result != CUDA_SUCCESS) {
		call_failed("session", "a context", result);
		return false;
	}
	check_print(CHECK_OK, "session", "opens in %.1f ms; a program sees %d device%s",
		    (double)(gp_now_ns() - begin_ns) / 1e6, *count_p, *count_p == 1 ? "" : "s");
	return true;
}

static void
check_latency(const struct driver *driver)
{
	uint64_t least_ns = UINT64_MAX;
	double ms;

	for (int i = 0; i < TRIPS; i++) {
		uint64_t begin_ns = gp_now_ns(), took_ns;
		size_t left, total;
		CUresult result = driver->cuMemGetInfo_v2_(&left, &total);

		if (result != CUDA_SUCCESS) {
			call_failed("latency", "cuMemGetInfo", result);
			return;
		}
		took_ns = gp_now_ns() - begin_ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	ms = (double)least_ns / 1e6;
	if (ms > SLOW_TRIP_MS)
		check_print(
			CHECK_NOTE, "latency",
			"a call that waits takes %.2f ms: programs that wait often are slow here "
			"(GPUPOOL_LOG=stats counts the waits)",
			ms);
	else
		check_print(CHECK_OK, "latency", "a call that waits takes %.3f ms", ms);
}

/* Pseudo-random data, which is incompressible. */
static void
buffer_fill(uint64_t *words, size_t size)
{
	uint64_t state = 88172645463325252u;

	for (size_t i = 0; i < size / sizeof(*words); i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		words[i] = state;
	}
}

/* Measures a copy to the device and back, in nanoseconds. cuMemcpyHtoD may return early, so a
 * one-byte copy back waits for the rest of it. */
static CUresult
copy_round_trip(const struct driver *driver, CUdeviceptr address, void *bytes, size_t size,
		uint64_t *in_p, uint64_t *out_p)
{
	uint64_t begin_ns = gp_now_ns(), middle_ns;
	char last;
	CUresult result = driver->cuMemcpyHtoD_v2_(address, bytes, size);

	if (result == CUDA_SUCCESS)
		result = driver->cuMemcpyDtoH_v2_(&last, address + size - 1, 1);
	middle_ns = gp_now_ns();
	if (result == CUDA_SUCCESS)
		result = driver->cuMemcpyDtoH_v2_(bytes, address, size);
	*in_p = middle_ns - begin_ns;
	*out_p = gp_now_ns() - middle_ns;
	return result;
}

static void
check_bandwidth(const struct driver *driver)
{
	size_t size = SMALL;
	uint64_t in_ns, out_ns;
	CUdeviceptr address;
	void *bytes = malloc(LARGE);
	CUresult result =
		bytes ? driver->cuMemAlloc_v2_(&address, LARGE) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS) {
		check_print(CHECK_NOTE, "bandwidth",
			    "not measured: there is no %zu MiB of memory for it", LARGE / MIB);
		free(bytes);
		return;
	}
	buffer_fill(bytes, LARGE);
	/* The first copies open connections. */
	for (int i = 0; result == CUDA_SUCCESS && i < 3; i++) {
		result = copy_round_trip(driver, address, bytes, size, &in_ns, &out_ns);
		if (i == 0 && in_ns + out_ns < 2 * FAST_NS)
			size = LARGE;
		else if (i == 0)
			break;
	}
	if (result != CUDA_SUCCESS)
		call_failed("bandwidth", "a copy", result);
	else
		check_print(CHECK_OK, "bandwidth", "%.0f MB/s to the GPU, %.0f MB/s back (%zu MiB)",
			    (double)size * 1e3 / (double)in_ns, (double)size * 1e3 / (double)out_ns,
			    size / MIB);
	(void)driver->cuMemFree_v2_(address);
	free(bytes);
}

static void
library_try(const struct cli_launch_env *launch_env, bool try_session)
{
	struct driver driver;
	int count = 0;

	stderr_capture();
	if (!driver_load(launch_env, &driver))
		return;
	if (!try_session) {
		check_print(CHECK_SKIPPED, "session", "not tried");
		return;
	}
	if (!open_context(&driver, &count))
		return;
	check_latency(&driver);
	check_bandwidth(&driver);
}

void
check_session(const struct cli_launch_env *launch_env, bool try_session)
{
	int before = check_get_errors(), status = 0;
	pid_t child;

	if (!*launch_env->folder) {
		check_print(CHECK_ERROR, "library",
			    "%s; install gpupool's client, or keep both together",
			    launch_env->library_error);
		return;
	}
	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		(void)alarm(SESSION_TIMEOUT_S);
		library_try(launch_env, try_session);
		exit(check_get_errors() - before);
	}
	if (child < 0) {
		check_print(CHECK_ERROR, "library", "cannot start a process: %s", strerror(errno));
		return;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		check_print(CHECK_ERROR, "session", "timed out after %d s; see the daemon's log",
			    SESSION_TIMEOUT_S);
	else if (WIFSIGNALED(status))
		check_print(CHECK_ERROR, "session", "the library crashed: %s",
			    strsignal(WTERMSIG(status)));
	check_add_errors(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
}
