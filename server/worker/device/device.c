/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/device.h"

#include "protocol/control.h"
#include "server/common/base/log.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpu_timestamp.h"
#include "server/worker/device/marker_page.h"
#include "server/worker/device/partition.h"

#include <stdio.h>
#include <stdlib.h>

/* The driver allocates these once; the first kernel that prints or allocates fixes their size for
 * all sessions. They are therefore made large enough for most programs from the start. */
#define PRINT_SIZE ((size_t)16 << 20)
#define HEAP_SIZE ((size_t)128 << 20)

struct gpd_devices gpd_devices;

static __thread int current_device = -1;

struct gpd_device *
gpd_device_get(int ordinal)
{
	if (ordinal < 0 || ordinal >= gpd_devices.count)
		return NULL;
	return &gpd_devices.all[ordinal];
}

CUresult
gpd_device_enter(int ordinal)
{
	struct gpd_device *device;
	CUresult result;

	if (ordinal == current_device)
		return CUDA_SUCCESS;
	device = gpd_device_get(ordinal);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	result = gpd_driver.cuCtxSetCurrent(device->primary);
	if (result == CUDA_SUCCESS)
		current_device = ordinal;
	return result;
}

static const char *
result_get_name(CUresult result)
{
	const char *name = NULL;

	(void)gpd_driver.cuGetErrorName(result, &name);
	return name ? name : "unknown error";
}

static CUresult
start_device(int ordinal)
{
	struct gpd_device *device = &gpd_devices.all[ordinal];
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal },
	};
	size_t memory = 0, granularity = 0;
	CUresult result = gpd_driver.cuDeviceGet(&device->device, ordinal);

	pthread_mutex_init(&device->limit_lock, NULL);
	if (result == CUDA_SUCCESS)
		result =
			gpd_driver.cuDevicePrimaryCtxSetFlags_v2(device->device, CU_CTX_SCHED_AUTO);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDevicePrimaryCtxRetain(&device->primary, device->device);
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(ordinal);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDeviceTotalMem_v2(&memory, device->device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemGetAllocationGranularity(&granularity, &prop,
								  CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (result != CUDA_SUCCESS)
		return result;
	device->memory = memory;
	device->granularity = granularity;
	if (granularity > gpd_devices.granularity)
		gpd_devices.granularity = granularity;
	(void)gpd_driver.cuDeviceGetAttribute(
		&device->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->device);
	(void)gpd_driver.cuDeviceGetAttribute(&device->threads_per_multiprocessor,
					      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
					      device->device);
	(void)gpd_driver.cuCtxGetStreamPriorityRange(&device->priority_least,
						     &device->priority_greatest);
	for (int i = 0; i < CU_LIMIT_MAX; i++) {
		size_t value;

		device->default_limits[i] = GP_LIMIT_UNSUPPORTED;
		if (gpd_driver.cuCtxGetLimit(&value, (CUlimit)i) == CUDA_SUCCESS)
			device->default_limits[i] = value;
	}
	(void)gpd_driver.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, PRINT_SIZE);
	(void)gpd_driver.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP_SIZE);
	for (int i = 0; i < CU_LIMIT_MAX; i++) {
		size_t value = 0;

		(void)gpd_driver.cuCtxGetLimit(&value, (CUlimit)i);
		atomic_store(&device->limits[i], value);
	}
	gpd_partition_start(ordinal);
	return CUDA_SUCCESS;
}

bool
gpd_device_has_peer(int ordinal, int peer)
{
	const struct gpd_device *device = gpd_device_get(ordinal);

	return device && gpd_device_get(peer) && (device->peers >> peer & 1);
}

static void
find_peers(struct gpd_device *device)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		int can = 0;

		if (gpd_driver.cuDeviceCanAccessPeer(&can, device->device,
						     gpd_devices.all[i].device) == CUDA_SUCCESS &&
		    can)
			device->peers |= UINT32_C(1) << i;
	}
}

/* Returns the number that the driver will read. */
static int
connections_set(int connections)
{
	static const char name[] = "CUDA_DEVICE_MAX_CONNECTIONS";
	const char *set = getenv(name);
	char text[16];

	if (set && atoi(set) > 0)
		return atoi(set);
	(void)snprintf(text, sizeof(text), "%d", connections);
	(void)setenv(name, text, 1);
	return connections;
}

int
gpd_devices_start(const char *path, bool software, int connections, char *error, size_t size)
{
	int count = 0;
	CUresult result;

	/* Makes the daemon use the real driver even if dlopen() finds a client library first. */
	(void)unsetenv("REMOTE_GPU");
	gpd_devices.connections = connections_set(connections);
	if (gpd_driver_open(path, software, error, size))
		return -1;
	if (*error)
		gpd_warning("%s", error);
	result = gpd_driver.cuInit(0);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDeviceGetCount(&count);
	if (result == CUDA_SUCCESS && count == 0)
		result = CUDA_ERROR_NO_DEVICE;
	if (result != CUDA_SUCCESS) {
		snprintf(error, size, "%.512s: no usable device: %s", gpd_driver.path,
			 result_get_name(result));
		return -1;
	}
	if (count > GPD_DEVICES_MAX)
		count = GPD_DEVICES_MAX;
	gpd_devices.count = count;
	for (int i = 0; i < count; i++) {
		result = start_device(i);
		if (result != CUDA_SUCCESS) {
			snprintf(error, size, "%.512s: device %d cannot be used: %s",
				 gpd_driver.path, i, result_get_name(result));
			return -1;
		}
	}
	for (int i = 0; i < count; i++)
		find_peers(&gpd_devices.all[i]);
	result = gpd_device_enter(0);
	if (result == CUDA_SUCCESS)
		result = gpd_marker_page_setup();
	if (result != CUDA_SUCCESS) {
		snprintf(error, size, "%.512s: no pinned memory: %s", gpd_driver.path,
			 result_get_name(result));
		return -1;
	}
	for (int i = count; i-- > 0;) {
		if (gpd_device_enter(i) == CUDA_SUCCESS)
			gpd_gpu_timestamp_start(i);
	}
	return 0;
}
