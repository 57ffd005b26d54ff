/* SPDX-License-Identifier: Apache-2.0 */
/* System functions of NVML: initialization, versions, error strings, process names, and units and
 * excluded devices, of which a pool has none. */
#include "nvml/answer.h"
#include "nvml/pool.h"
#include "nvml/usage.h"

#include <stddef.h>

GPN_FUNCTION(nvmlInitWithFlags, unsigned int flags)
{
	return flags & ~GPN_INIT_FLAGS ? GPN_INVALID_ARGUMENT
				       : gpn_init(!(flags & GPN_INIT_NO_GPUS));
}

GPN_FUNCTION(nvmlInit_v2, void)
{
	return gpn_init(1);
}

GPN_ALIAS(nvmlInit, nvmlInit_v2, void);

GPN_FUNCTION(nvmlShutdown, void)
{
	return gpn_shutdown();
}

const char *gpn_nvmlErrorString(int result);

const char *
gpn_nvmlErrorString(int result)
{
	static const struct {
		int result;
		const char *text;
	} texts[] = {
		{ GPN_SUCCESS, "Success" },
		{ GPN_UNINITIALIZED, "Uninitialized" },
		{ GPN_INVALID_ARGUMENT, "Invalid Argument" },
		{ GPN_NOT_SUPPORTED, "Not Supported" },
		{ GPN_NO_PERMISSION, "Insufficient Permissions" },
		{ GPN_NOT_FOUND, "Not Found" },
		{ GPN_INSUFFICIENT_SIZE, "Insufficient Size" },
		{ GPN_DRIVER_NOT_LOADED, "Driver Not Loaded" },
		{ GPN_TIMEOUT, "Timeout" },
		{ GPN_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found" },
		{ GPN_FUNCTION_NOT_FOUND, "Function Not Found" },
		{ GPN_GPU_IS_LOST, "GPU is lost" },
		{ GPN_MEMORY, "Insufficient Memory" },
		{ GPN_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].result == result)
			return texts[i].text;
	}
	return "Unknown Error";
}

/* Returns a text of the pool's first server. */
static int
system_text(int text, char *out, unsigned int size)
{
	int r = gpn_check_arguments(out);

	if (r != GPN_SUCCESS)
		return r;
	return gpn_get_device_count() ? gpn_get_text(gpn_get_device(0), text, out, size)
				      : GPN_NOT_SUPPORTED;
}

#define TEXT(number, name)                                                                         \
	GPN_FUNCTION(name, char *out, unsigned int size)                                           \
	{                                                                                          \
		return system_text(number, out, size);                                             \
	}
GP_STATE_SYSTEM_TEXTS(TEXT)

GPN_FUNCTION(nvmlSystemGetDriverBranch, struct gp_driver_branch *branch, unsigned int size)
{
	int r = gpn_check_arguments(branch);

	if (r != GPN_SUCCESS)
		return r;
	if (branch->version != GP_DRIVER_BRANCH_VERSION)
		return GPN_ARGUMENT_VERSION_MISMATCH;
	return system_text(GP_STATE_DRIVER_BRANCH, branch->text,
			   size < sizeof(branch->text) ? size : sizeof(branch->text));
}

GPN_FUNCTION(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
	int r = gpn_check_arguments(version);

	if (r == GPN_SUCCESS)
		*version = gpn_get_driver_version();
	return r;
}

GPN_ALIAS(nvmlSystemGetCudaDriverVersion, nvmlSystemGetCudaDriverVersion_v2, int *version);

/* A process of this machine, like all listed processes. */
GPN_FUNCTION(nvmlSystemGetProcessName, unsigned int pid, char *name, unsigned int size)
{
	int r = gpn_check_arguments(name && size > 0);

	return r == GPN_SUCCESS ? gpn_process_name(pid, name, size) : r;
}

GPN_FUNCTION(nvmlUnitGetCount, unsigned int *count)
{
	int r = gpn_check_arguments(count);

	if (r == GPN_SUCCESS)
		*count = 0;
	return r;
}

GPN_ALIAS(nvmlGetExcludedDeviceCount, nvmlUnitGetCount, unsigned int *count);
GPN_ALIAS(nvmlGetBlacklistDeviceCount, nvmlUnitGetCount, unsigned int *count);
