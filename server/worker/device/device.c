/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/device.h"

#include "protocol/control.h"
#include "server/common/base/device_list.h"
#include "server/common/base/log.h"
#include "server/common/ledger/channel.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpu_timestamp.h"
#include "server/worker/device/marker_page.h"
#include "server/worker/device/nvml.h"
#include "server/worker/device/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The driver allocates these once; the first kernel that prints or allocates fixes their size for
 * all sessions. They are therefore made large enough for most programs from the start. */
#define PRINT_SIZE ((size_t)16 << 20)
#define HEAP_SIZE ((size_t)128 << 20)

struct gpd_devices gpd_devices;

static const struct gpd_device_hooks *hooks;
static __thread int current_device = -1;

struct gpd_device *
gpd_device_get(int ordinal)
{
	if (ordinal < 0 || ordinal >= gpd_devices.count)
		return NULL;
	return &gpd_devices.all[ordinal];
}

bool
gpd_device_has_context(int ordinal)
{
	const struct gpd_device *device = gpd_device_get(ordinal);

	return device && atomic_load_explicit(&device->has_context, memory_order_acquire);
}

static const char *
result_get_name(CUresult result)
{
	const char *name = NULL;

	(void)gpd_driver.cuGetErrorName(result, &name);
	return name ? name : "unknown error";
}

static CUresult
device_set_current(int ordinal)
{
	CUresult result = gpd_driver.cuCtxSetCurrent(gpd_devices.all[ordinal].primary);

	if (result == CUDA_SUCCESS)
		current_device = ordinal;
	return result;
}

/* The context must be current. */
static void
limits_start(struct gpd_device *device)
{
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
		device->own_limits[i] = value;
	}
}

/* Creates the context and makes it current. */
static CUresult
context_start(int ordinal)
{
	struct gpd_device *device = &gpd_devices.all[ordinal];
	CUresult result =
		gpd_driver.cuDevicePrimaryCtxSetFlags_v2(device->device, CU_CTX_SCHED_AUTO);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDevicePrimaryCtxRetain(&device->primary, device->device);
	if (result == CUDA_SUCCESS)
		result = device_set_current(ordinal);
	if (result != CUDA_SUCCESS)
		return result;
	(void)gpd_driver.cuCtxGetStreamPriorityRange(&device->priority_least,
						     &device->priority_greatest);
	limits_start(device);
	gpd_gpu_timestamp_start(ordinal);
	hooks->complete(ordinal);
	return CUDA_SUCCESS;
}

/* Leaves the new context current. After an error the current context is unchanged. */
static CUresult
context_create(int ordinal)
{
	struct gpd_channel_context report = { .step = GPD_CONTEXT_STARTS };
	uint64_t before;
	CUresult result;

	hooks->report(ordinal, &report);
	before = gpd_nvml_get_free_memory(ordinal);
	result = context_start(ordinal);
	if (result != CUDA_SUCCESS)
		return result;
	report.step = GPD_CONTEXT_CREATED;
	report.bytes = gpd_nvml_get_own_memory(ordinal, before);
	hooks->report(ordinal, &report);
	gpd_debug("device %d: context of %llu MiB created", ordinal,
		  (unsigned long long)(report.bytes >> 20));
	atomic_store_explicit(&gpd_devices.all[ordinal].has_context, true, memory_order_release);
	return CUDA_SUCCESS;
}

/* Creates the context if there is none. Returns the driver's error. */
static CUresult
context_obtain(int ordinal)
{
	struct gpd_device *device = &gpd_devices.all[ordinal];
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&device->context_lock);
	if (!gpd_device_has_context(ordinal)) {
		result = atomic_load(&gpd_devices.lost) ? CUDA_ERROR_DEVICE_UNAVAILABLE
							: hooks->may_create(ordinal);
		if (result == CUDA_SUCCESS)
			result = context_create(ordinal);
	}
	pthread_mutex_unlock(&device->context_lock);
	return result;
}

/* Returns the error for the session: none of those by which CUDA becomes unusable. */
static CUresult
failure_report(int ordinal, CUresult result)
{
	const struct gpd_channel_context report = { .step = GPD_CONTEXT_FAILED,
						    .result = (int32_t)result };

	if (!atomic_exchange(&gpd_devices.all[ordinal].has_failed, true))
		gpd_warning("device %d: no context can be created: %s", ordinal,
			    result_get_name(result));
	hooks->report(ordinal, &report);
	return result == CUDA_ERROR_OUT_OF_MEMORY ? result : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

CUresult
gpd_device_enter(int ordinal)
{
	struct gpd_device *device;
	CUresult result = CUDA_SUCCESS;

	if (ordinal == current_device)
		return CUDA_SUCCESS;
	device = gpd_device_get(ordinal);
	if (!device || device->absent)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!gpd_device_has_context(ordinal))
		result = context_obtain(ordinal);
	return result == CUDA_SUCCESS ? device_set_current(ordinal)
				      : failure_report(ordinal, result);
}

CUresult
gpd_device_enter_any(void)
{
	int first = 0;

	while (first < gpd_devices.count && !gpd_device_has_context(first))
		first++;
	return gpd_device_enter(first);
}

CUresult
gpd_device_get_memory(int ordinal, size_t *free_p, size_t *total_p)
{
	const struct gpd_device *device = gpd_device_get(ordinal);
	CUresult result;

	if (!device || device->absent)
		return CUDA_ERROR_INVALID_DEVICE;
	if (gpd_device_has_context(ordinal)) {
		result = gpd_device_enter(ordinal);
		return result == CUDA_SUCCESS ? gpd_driver.cuMemGetInfo_v2(free_p, total_p)
					      : result;
	}
	*total_p = device->memory;
	*free_p = gpd_nvml_get_free_memory(ordinal);
	if (*free_p == 0 || *free_p > *total_p)
		*free_p = *total_p;
	return CUDA_SUCCESS;
}

/* Reads what needs no context. */
static CUresult
device_describe(int ordinal)
{
	struct gpd_device *device = &gpd_devices.all[ordinal];
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->device },
	};
	size_t memory = 0, granularity = 0;
	CUresult result = CUDA_ERROR_NO_DEVICE;

	if (device->device >= 0)
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

		if (!device->absent && !gpd_devices.all[i].absent &&
		    gpd_driver.cuDeviceCanAccessPeer(&can, device->device,
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

/* Hides the devices that are not used from the driver, which else opens them: one that has fallen
 * off the bus may make it fail, and a GPU that a process has open cannot be reset. */
static void
hide_unused(const struct gpd_device_list *list)
{
	char text[GPD_DEVICE_LIST_TEXT_MAX] = "";
	int used = 0;

	for (int i = 0; i < list->count; i++) {
		char uuid[GPD_DEVICE_UUID_TEXT_SIZE];

		if (!gpd_device_list_has(list, i))
			continue;
		gpd_device_list_format_uuid(list, i, uuid);
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			       used++ ? "," : "", uuid);
	}
	if (used < list->count)
		(void)setenv("CUDA_VISIBLE_DEVICES", text, 1);
}

/* Returns the ordinal of the driver's device; -1: the list does not have it. */
static int
find_ordinal(const struct gpd_device_list *list, int number, CUdevice device)
{
	CUuuid uuid;

	if (list->count == 0)
		return number;
	if (gpd_driver.cuDeviceGetUuid_v2(&uuid, device) != CUDA_SUCCESS)
		return -1;
	for (int i = 0; i < list->count; i++) {
		if (memcmp(list->uuids[i], uuid.bytes, sizeof(uuid.bytes)) == 0)
			return i;
	}
	return -1;
}

/* Sets the driver's number of each device, and memory and multiprocessors of those that are not
 * used: the first worker describes them, too. count: number of the driver's devices. */
static CUresult
find_devices(const struct gpd_device_list *list, int count)
{
	gpd_devices.count = list->count ? list->count : count;
	for (int i = 0; i < gpd_devices.count; i++) {
		gpd_devices.all[i].device = -1;
		pthread_mutex_init(&gpd_devices.all[i].limit_lock, NULL);
		pthread_mutex_init(&gpd_devices.all[i].context_lock, NULL);
		gpd_devices.all[i].absent = !gpd_device_list_has(list, i);
	}
	for (int i = 0; i < count; i++) {
		CUdevice device;
		CUresult result = gpd_driver.cuDeviceGet(&device, i);
		int ordinal = result == CUDA_SUCCESS ? find_ordinal(list, i, device) : -1;
		size_t memory = 0;

		if (result != CUDA_SUCCESS)
			return result;
		if (ordinal < 0)
			continue;
		gpd_devices.all[ordinal].device = device;
		if (!gpd_devices.all[ordinal].absent)
			continue;
		(void)gpd_driver.cuDeviceTotalMem_v2(&memory, device);
		gpd_devices.all[ordinal].memory = memory;
	}
	return CUDA_SUCCESS;
}

/* A device without a context gets the values of one that has a context. */
static void
values_copy(void)
{
	const struct gpd_device *from = &gpd_devices.all[current_device];

	for (int i = 0; i < gpd_devices.count; i++) {
		struct gpd_device *device = &gpd_devices.all[i];

		if (device->absent || gpd_device_has_context(i))
			continue;
		device->priority_least = from->priority_least;
		device->priority_greatest = from->priority_greatest;
		memcpy(device->default_limits, from->default_limits,
		       sizeof(device->default_limits));
	}
}

/* The report makes the supervisor count a failure of this device. */
static CUresult
device_start(int ordinal, bool with_context)
{
	const struct gpd_channel_context report = { .step = GPD_CONTEXT_STARTS };
	CUresult result = device_describe(ordinal);

	if (result != CUDA_SUCCESS)
		hooks->report(ordinal, &report);
	else if (with_context)
		result = context_obtain(ordinal);
	return result;
}

static CUresult
start_used(const struct gpd_device_list *list, char *error, size_t size)
{
	int used = 0;

	for (int i = 0; i < gpd_devices.count; i++) {
		bool with_context = list->contexts >> i & 1;
		CUresult result;

		if (gpd_devices.all[i].absent)
			continue;
		result = device_start(i, with_context);
		used += with_context;
		if (result != CUDA_SUCCESS) {
			snprintf(error, size, "%.512s: device %d cannot be used: %s",
				 gpd_driver.path, i, result_get_name(result));
			return result;
		}
	}
	if (used)
		return CUDA_SUCCESS;
	snprintf(error, size, "%.512s: no usable device: no context can be created on any",
		 gpd_driver.path);
	return CUDA_ERROR_NO_DEVICE;
}

static CUresult
driver_start(const char *path, bool software, const struct gpd_device_list *list, char *error,
	     size_t size)
{
	int count = 0;
	CUresult result;

	if (gpd_driver_open(path, software, error, size))
		return CUDA_ERROR_NOT_FOUND;
	if (*error)
		gpd_warning("%s", error);
	result = gpd_driver.cuInit(0);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDeviceGetCount(&count);
	if (result == CUDA_SUCCESS && count == 0)
		result = CUDA_ERROR_NO_DEVICE;
	if (result == CUDA_SUCCESS)
		result = find_devices(list, count < GPD_DEVICES_MAX ? count : GPD_DEVICES_MAX);
	if (result != CUDA_SUCCESS)
		snprintf(error, size, "%.512s: no usable device: %s", gpd_driver.path,
			 result_get_name(result));
	return result;
}

CUresult
gpd_devices_start(const char *path, bool software, int connections,
		  const struct gpd_device_list *list, const struct gpd_device_hooks *device_hooks,
		  char *error, size_t size)
{
	CUresult result;

	/* Makes the daemon use the real driver even if dlopen() finds a client library first. */
	(void)unsetenv("REMOTE_GPU");
	hooks = device_hooks;
	gpd_devices.connections = connections_set(connections);
	hide_unused(list);
	result = driver_start(path, software, list, error, size);
	if (result == CUDA_SUCCESS)
		result = start_used(list, error, size);
	if (result != CUDA_SUCCESS)
		return result;
	for (int i = 0; i < gpd_devices.count; i++)
		find_peers(&gpd_devices.all[i]);
	result = gpd_device_enter_any();
	if (result == CUDA_SUCCESS)
		result = gpd_marker_page_setup();
	if (result != CUDA_SUCCESS) {
		snprintf(error, size, "%.512s: no pinned memory: %s", gpd_driver.path,
			 result_get_name(result));
		return result;
	}
	values_copy();
	return CUDA_SUCCESS;
}
