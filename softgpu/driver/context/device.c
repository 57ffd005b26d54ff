/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/machine.h"
#include "softgpu/driver/driver.h"
#include "softgpu/engine/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_NAME "gpupool software device"
#define PCI_BUS_ID_SIZE sizeof("0000:00:00.0")
#define MEMORY_DEFAULT_MAX ((size_t)4 << 30)
#define MULTIPROCESSORS_VARIABLE "GPUPOOL_SOFT_MULTIPROCESSORS"
#define DEVICES_VARIABLE "GPUPOOL_SOFT_DEVICES"
#define PEERS_VARIABLE "GPUPOOL_SOFT_PEERS"
/* As for CUDA: the UUIDs of the devices that a process sees, in this order. */
#define VISIBLE_VARIABLE "CUDA_VISIBLE_DEVICES"
#define UUID_TEXT_SIZE 41

static struct {
	pthread_mutex_t lock;
	bool ready;
	size_t memory;
	int multiprocessors;
	bool peers;
	/* The devices that cuDeviceGet() returns, by ordinal. */
	int visible[GS_DEVICES_MAX];
	int visible_count;
} device = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Parses "512M", "4G", or bytes; returns 0 if invalid. */
static size_t
parse_size(const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);
	unsigned int shift = 0;

	if (*end == 'K' || *end == 'k')
		shift = 10;
	else if (*end == 'M' || *end == 'm')
		shift = 20;
	else if (*end == 'G' || *end == 'g')
		shift = 30;
	if (end == text || (*end && (!shift || end[1])) || n > (UINT64_MAX >> shift))
		return 0;
	return (size_t)(n << shift);
}

size_t
gs_device_context_memory(void)
{
	const char *text = getenv("GPUPOOL_SOFT_CONTEXT_MEMORY");

	return text ? parse_size(text) : 0;
}

static size_t
memory_size(void)
{
	const char *text = getenv("GPUPOOL_SOFT_MEMORY");
	size_t half = gp_machine_memory("") / 2;
	size_t size = text ? parse_size(text) : 0;

	if (!size)
		size = half < MEMORY_DEFAULT_MAX ? half : MEMORY_DEFAULT_MAX;
	return size;
}

/* Returns the value of an environment variable, if it is within the limits. */
static int
read_number(const char *variable, int least, int most, int otherwise)
{
	const char *text = getenv(variable);
	char *end = NULL;
	long number = text ? strtol(text, &end, 10) : 0;

	return text && end != text && number >= least && number <= most ? (int)number : otherwise;
}

int
gs_device_count(void)
{
	static int count;
	int known = __atomic_load_n(&count, __ATOMIC_RELAXED);

	if (!known) {
		known = read_number(DEVICES_VARIABLE, 1, GS_DEVICES_MAX, 1);
		__atomic_store_n(&count, known, __ATOMIC_RELAXED);
	}
	return known;
}

/* Equal on every machine except for its end, which identifies the software device. */
static void
uuid_set(int number, CUuuid *uuid)
{
	memcpy(uuid->bytes, "gpupool-software", sizeof(uuid->bytes));
	uuid->bytes[sizeof(uuid->bytes) - 1] += (char)number;
}

void
gs_device_uuid_text(int number, char *text, size_t size)
{
	size_t length = (size_t)snprintf(text, size, "GPU-");
	CUuuid uuid;

	uuid_set(number, &uuid);
	for (int i = 0; i < 16 && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%02x",
					   i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					   (unsigned char)uuid.bytes[i]);
}

/* An element that names no device ends the list, as for CUDA. */
static void
visible_read(void)
{
	const char *text = getenv(VISIBLE_VARIABLE);

	for (int i = 0; !text && i < gs_device_count(); i++)
		device.visible[device.visible_count++] = i;
	while (text && *text && device.visible_count < GS_DEVICES_MAX) {
		size_t length = strcspn(text, ",");
		char uuid[UUID_TEXT_SIZE];
		int found = -1;

		for (int i = 0; i < gs_device_count() && found < 0; i++) {
			gs_device_uuid_text(i, uuid, sizeof(uuid));
			if (strlen(uuid) == length && memcmp(uuid, text, length) == 0)
				found = i;
		}
		if (found < 0)
			return;
		device.visible[device.visible_count++] = found;
		text += length + (text[length] == ',');
	}
}

/* Waits for the time in milliseconds that the environment variable has, if it is set. */
static void
simulate_time(const char *variable)
{
	const char *text = getenv(variable);
	long ms = text ? strtol(text, NULL, 10) : 0;

	if (ms > 0)
		gp_sleep_ns((uint64_t)ms * 1000000);
}

void
gs_device_simulate_context(void)
{
	simulate_time("GPUPOOL_SOFT_CONTEXT_MS");
}

CUresult CUDAAPI
cuInit(unsigned int flags)
{
	CUresult r = CUDA_SUCCESS;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&device.lock);
	if (!device.ready) {
		simulate_time("GPUPOOL_SOFT_START_MS");
		r = (CUresult)gs_engine_init(NULL);
		if (!r) {
			device.memory = memory_size();
			device.multiprocessors =
				read_number(MULTIPROCESSORS_VARIABLE, 1, GS_MULTIPROCESSORS_MAX,
					    gs_engine_workers());
			visible_read();
			device.peers = read_number(PEERS_VARIABLE, 0, 1, 1) != 0;
			__atomic_store_n(&device.ready, true, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&device.lock);
	return r;
}

CUresult
gs_enter_device(void)
{
	return __atomic_load_n(&device.ready, __ATOMIC_ACQUIRE) ? CUDA_SUCCESS
								: CUDA_ERROR_NOT_INITIALIZED;
}

CUresult
gs_check_device(CUdevice dev)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	return dev >= 0 && dev < gs_device_count() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool
gs_device_peers(void)
{
	return device.peers;
}

size_t
gs_device_memory(void)
{
	return device.memory;
}

int
gs_device_multiprocessors(void)
{
	return device.multiprocessors;
}

CUresult CUDAAPI
cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = 13000;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetCount(int *count)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = device.visible_count;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGet(CUdevice *dev, int ordinal)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!dev)
		return CUDA_ERROR_INVALID_VALUE;
	if (ordinal < 0 || ordinal >= device.visible_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*dev = device.visible[ordinal];
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetName(char *name, int len, CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)len, "%s", DEVICE_NAME);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	uuid_set(dev, uuid);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = device.memory;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetPCIBusId(char *id, int len, CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (!id || len < (int)PCI_BUS_ID_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(id, (size_t)len, "0000:%02x:00.0", (unsigned int)dev);
	return CUDA_SUCCESS;
}

/* Attributes that are not listed are unsupported features: 0. */
static const int attributes[CU_DEVICE_ATTRIBUTE_MAX] = {
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = GS_BLOCK_THREADS,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y] = 1024,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z] = 64,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X] = INT32_MAX,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z] = 65535,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = GS_BLOCK_SHARED,
	[CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY] = 65536,
	[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32,
	[CU_DEVICE_ATTRIBUTE_MAX_PITCH] = INT32_MAX,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = GS_MULTIPROCESSOR_REGISTERS,
	[CU_DEVICE_ATTRIBUTE_CLOCK_RATE] = 1000000,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT] = 512,
	[CU_DEVICE_ATTRIBUTE_GPU_OVERLAP] = 1,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT] = 65536,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH] = 1 << 27,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT] = 65000,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH] = INT32_MAX,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH] = 131072,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT] = 65536,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH] = 16384,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS] = 2048,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH] = 32768,
	[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS] = 2048,
	[CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT] = 512,
	[CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1,
	[CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE] = 1000000,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH] = 64,
	[CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 1 << 20,
	[CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE] = 1 << 19,
	[CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE] = 128 << 20,
	[CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT] = 4,
	[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR] = GS_MULTIPROCESSOR_THREADS,
	[CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT] = 2,
	[CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1,
	[CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT] = 32,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9,
	[CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = GS_MULTIPROCESSOR_SHARED,
	[CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR] = GS_MULTIPROCESSOR_REGISTERS,
	[CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO] = 2,
	[CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1] = 1,
	[CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH] = 1,
	[CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = GS_BLOCK_SHARED_OPTIN,
	[CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS] =
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST,
	[CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING] =
		CU_GPU_DIRECT_RDMA_WRITES_ORDERING_NONE,
	[CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR] = GS_MULTIPROCESSOR_BLOCKS,
	[CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK] = GS_BLOCK_SHARED_RESERVED,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS] = 1,
	[CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR] = 1,
	[CU_DEVICE_ATTRIBUTE_NUMA_ID] = -1,
	[CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] = 1,
	[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = -1,
};

CUresult CUDAAPI
cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (!value || (int)attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*value = device.multiprocessors;
	else if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)
		*value = dev;
	else
		*value = attributes[attribute];
	return CUDA_SUCCESS;
}

static CUresult
check_pair(const void *out, CUdevice dev, CUdevice peer)
{
	CUresult r = gs_check_device(dev);

	if (!r)
		r = gs_check_device(peer);
	return !r && !out ? CUDA_ERROR_INVALID_VALUE : r;
}

CUresult CUDAAPI
cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	CUresult r = check_pair(can, dev, peer);

	if (!r)
		*can = dev != peer && device.peers;
	return r;
}

/* All memory is the machine's, so atomic operations work as on a single device. */
CUresult CUDAAPI
cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice dev, CUdevice peer)
{
	CUresult r = check_pair(value, dev, peer);

	if (!r && dev == peer)
		r = CUDA_ERROR_INVALID_DEVICE;
	if (r)
		return r;
	switch (attribute) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = device.peers;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
