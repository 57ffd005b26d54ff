/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/driver.h"

#include "protocol/admin_messages.h"

#include <dlfcn.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NVIDIA "libcuda.so.1"
#define SOFTWARE "libcuda-soft.so"

struct gpd_driver gpd_driver;

/* A driver older than CUDA 12.8 has only the first, which does the same. */
#define ELAPSED "cuEventElapsedTime"
#define ELAPSED_NEW ELAPSED "_v2"

static void *
symbol_find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	return symbol || strcmp(name, ELAPSED_NEW) != 0 ? symbol : dlsym(library, ELAPSED);
}

/* Fills the table. Returns the name of the first required function that the library lacks, or
 * NULL. */
static const char *
driver_fill(void *library)
{
	for (size_t i = 0; i < gpd_driver_function_count; i++) {
		const struct gpd_driver_function *function = &gpd_driver_functions[i];
		void *symbol = symbol_find(library, function->name);

		if (!symbol && function->required)
			return function->name;
		if (!symbol)
			symbol = (void *)gpd_driver_unsupported;
		memcpy((char *)&gpd_driver + function->offset, &symbol, sizeof(symbol));
	}
	*(void **)&gpd_driver.gpSoftStreamCancel = dlsym(library, "gpSoftStreamCancel");
	*(void **)&gpd_driver.gpSoftKernelUnsupported = dlsym(library, "gpSoftKernelUnsupported");
	return NULL;
}

static int
open_path(const char *path, char *error, size_t error_size)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *missing;
	Dl_info info;

	if (!library) {
		const char *why = dlerror();
		size_t length = strlen(path);

		/* dlerror() begins with the path, which is already in the line. */
		if (strncmp(why, path, length) == 0 && strncmp(why + length, ": ", 2) == 0)
			why += length + 2;
		snprintf(error, error_size, "%s: %s", path, why);
		return -1;
	}
	missing = driver_fill(library);
	if (missing) {
		snprintf(error, error_size, "%s: %s: it has no %s", path,
			 dlsym(library, "cuInit")
				 ? "older than CUDA 12.4 (driver 550), which is needed"
				 : "not a CUDA driver library",
			 missing);
		dlclose(library);
		memset(&gpd_driver, 0, sizeof(gpd_driver));
		return -1;
	}
	gpd_driver.software = gpd_driver.gpSoftStreamCancel != NULL;
	/* For tests: kernels cannot be canceled, as on a GPU. */
	if (getenv("GPUPOOL_SOFT_NO_CANCEL"))
		gpd_driver.gpSoftStreamCancel = NULL;
	/* The software device has no calls that wait until no kernel runs, unless a test makes it
	 * do so. */
	if (gpd_driver.software && !getenv("GPUPOOL_SOFT_LOADING_WAITS"))
		gpd_driver.cuCtxRecordEvent = NULL;
	snprintf(gpd_driver.path, sizeof(gpd_driver.path), "%s", path);
	if (dladdr((void *)gpd_driver.cuInit, &info) && info.dli_fname)
		snprintf(gpd_driver.path, sizeof(gpd_driver.path), "%s", info.dli_fname);
	return 0;
}

/* Finds the software device: next to the daemon, in a build tree or installed. -EACCES: the user
 * may not enter the program's folder, such as one in root's home; the folder is in `path`. */
static int
find_software(char *path, size_t size)
{
	static const char *const places[] = { "", "../softgpu/driver/",
					      "../" GPD_LIBDIR "/gpupool/" };
	const char *given = getenv("GPUPOOL_SOFT_DRIVER");
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	snprintf(path, size, "%s", given && *given ? given : SOFTWARE);
	if ((given && *given) || length < 0)
		return 0;
	self[length] = 0;
	slash = strrchr(self, '/');
	if (!slash)
		return 0;
	slash[1] = 0;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char candidate[4096 + 64];

		snprintf(candidate, sizeof(candidate), "%s%s%s", self, places[i], SOFTWARE);
		if (access(candidate, R_OK) == 0) {
			snprintf(path, size, "%s", candidate);
			return 0;
		}
	}
	if (access(self, X_OK) == 0 || errno != EACCES)
		return 0;
	snprintf(path, size, "%s", self);
	return -EACCES;
}

/* Name of the daemon's user. */
static const char *
user_name(void)
{
	const struct passwd *user = getpwuid(geteuid());

	return user ? user->pw_name : "which has no name";
}

/* Opens NVIDIA's library. It can be installed where there is no GPU, or where its kernel module is
 * not loaded or has another version. Returns -1 with the reason in `why`. */
static int
open_nvidia(char *why, size_t size)
{
	const char *name = NULL;
	CUresult result;
	int count = 0;

	if (open_path(NVIDIA, why, size))
		return -1;
	result = gpd_driver.cuInit(0);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDeviceGetCount(&count);
	if (result == CUDA_SUCCESS && count > 0)
		return 0;
	if (result != CUDA_SUCCESS)
		(void)gpd_driver.cuGetErrorName(result, &name);
	snprintf(why, size, "%.512s: no device%s%s", gpd_driver.path, name ? ": " : "",
		 name ? name : "");
	memset(&gpd_driver, 0, sizeof(gpd_driver));
	return -1;
}

int
gpd_driver_open(const char *path, bool software_allowed, char *error, size_t error_size)
{
	char software[4200], why[1024];

	*error = '\0';
	if (path)
		return open_path(path, error, error_size);
	if (open_nvidia(why, sizeof(why)) == 0)
		return 0;
	if (!software_allowed) {
		snprintf(
			error, error_size,
			"no working NVIDIA driver (%s), and the software device is off: repair the "
			"driver (nvidia-smi), or set software-device = on",
			why);
		return -1;
	}
	if (find_software(software, sizeof(software))) {
		snprintf(error, error_size,
			 "%s: Permission denied: the daemon's user, %s, must read the software "
			 "device there: --user names another (and before that, %s)",
			 software, user_name(), why);
		return -1;
	}
	if (open_path(software, error, error_size)) {
		size_t used = strlen(error);

		snprintf(error + used, error_size - used, " (and before that, %s)", why);
		return -1;
	}
	snprintf(error, error_size,
		 "no working NVIDIA driver (%s): kernels run on the CPU, by the software device "
		 "%s; --software-device=off forbids it",
		 why, gpd_driver.path);
	return 0;
}

int
gpd_driver_list(const char *path, bool software, struct gpd_lint_device *devices, char *error,
		size_t error_size)
{
	int count = 0;

	/* As in the worker: a client library that is found first then passes its calls to the
	 * driver. */
	(void)unsetenv("REMOTE_GPU");
	if (gpd_driver_open(path, software, error, error_size))
		return -1;
	if (gpd_driver.cuInit(0) != CUDA_SUCCESS ||
	    gpd_driver.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return 0;
	if (count > GPD_LEDGER_DEVICES)
		count = GPD_LEDGER_DEVICES;
	for (int i = 0; i < count; i++) {
		CUuuid uuid = { { 0 } };
		ProtobufCBinaryData bytes = { sizeof(uuid.bytes), (uint8_t *)uuid.bytes };
		CUdevice device = 0;

		devices[i].memory = 0;
		devices[i].multiprocessors = 0;
		devices[i].context = gpd_driver.software ? 0 : GPD_CONTEXT_MEMORY;
		(void)gpd_driver.cuDeviceGet(&device, i);
		(void)gpd_driver.cuDeviceTotalMem_v2(&devices[i].memory, device);
		(void)gpd_driver.cuDeviceGetAttribute(&devices[i].multiprocessors,
						      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
						      device);
		(void)gpd_driver.cuDeviceGetUuid_v2(&uuid, device);
		gp_admin_format_uuid(&bytes, devices[i].uuid);
	}
	return count;
}

bool
gpd_driver_is_sticky(CUresult result)
{
	return gpd_is_sticky_error(result);
}
