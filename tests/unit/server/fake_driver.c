/* SPDX-License-Identifier: Apache-2.0 */
/* Fake CUDA driver of fake_session.h: log of calls, memory, copies, streams and events. */

/* assert() checks the tested code, so it is active in every build. */
#undef NDEBUG
#include "tests/unit/server/fake_driver.h"

#include "tests/unit/server/fake_session.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Size of the part of new memory that is filled with the data of an earlier use. */
#define LEFT_BEHIND (2 * FAKE_GRANULE)

char fake_driver_calls[FAKE_TEXT];
_Atomic int fake_driver_chunks;
const char *fake_driver_kernel_text;
_Atomic bool fake_driver_events_pending;
struct gpd_driver gpd_driver;

static size_t calls_size;
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char function[64];
	CUresult result;
	unsigned int skip;
} failure;

void
fake_driver_fail(const char *function, CUresult result, unsigned int skip)
{
	snprintf(failure.function, sizeof(failure.function), "%s", function);
	failure.result = result;
	failure.skip = skip;
}

void
fake_driver_clear_calls(void)
{
	calls_size = 0;
	fake_driver_calls[0] = 0;
}

unsigned int
fake_driver_count_calls(const char *start)
{
	unsigned int count = 0;

	for (const char *line = fake_driver_calls; *line; line = strchr(line, '\n') + 1)
		count += !strncmp(line, start, strlen(start));
	return count;
}

CUresult
fake_driver_called(const char *format, ...)
{
	CUresult result = CUDA_SUCCESS;
	va_list args;
	char *line;

	pthread_mutex_lock(&calls_lock);
	line = fake_driver_calls + calls_size;
	va_start(args, format);
	calls_size += (size_t)vsnprintf(line, FAKE_TEXT - calls_size, format, args);
	va_end(args);
	assert(calls_size + 2 < FAKE_TEXT);
	fake_driver_calls[calls_size++] = '\n';
	fake_driver_calls[calls_size] = 0;
	if (failure.function[0] && !strncmp(line, failure.function, strlen(failure.function)) &&
	    !failure.skip--) {
		failure.function[0] = 0;
		result = failure.result;
	}
	pthread_mutex_unlock(&calls_lock);
	return result;
}

static CUresult
mem_create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
	   unsigned long long flags)
{
	CUresult result = fake_driver_called("cuMemCreate %zu device %d handles %d", size,
					     prop->location.id, (int)prop->requestedHandleTypes);

	if (result == CUDA_SUCCESS)
		*handle = (CUmemGenericAllocationHandle)++fake_driver_chunks;
	return result;
}

static CUresult
mem_release(CUmemGenericAllocationHandle handle)
{
	fake_driver_chunks--;
	return fake_driver_called("cuMemRelease");
}

/* New memory contains the data of an earlier use. */
static CUresult
mem_map(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	CUresult result = fake_driver_called("cuMemMap %llx %zu", address, size);
	void *wanted = (void *)(uintptr_t)address;

	if (result != CUDA_SUCCESS)
		return result;
	assert(mmap(wanted, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1,
		    0) == wanted);
	memset(wanted, 0xee, size < LEFT_BEHIND ? size : LEFT_BEHIND);
	return CUDA_SUCCESS;
}

static CUresult
mem_unmap(CUdeviceptr address, size_t size)
{
	munmap((void *)(uintptr_t)address, size);
	return fake_driver_called("cuMemUnmap %llx %zu", address, size);
}

static CUresult
mem_set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	char devices[64] = "";

	for (size_t i = 0; i < count && i < 8; i++)
		(void)snprintf(devices + strlen(devices), sizeof(devices) - strlen(devices), " %d",
			       desc[i].location.id);
	return fake_driver_called("cuMemSetAccess %llx %zu devices%s", address, size, devices);
}

static CUresult
enable_peer(CUcontext peer, unsigned int flags)
{
	return fake_driver_called("cuCtxEnablePeerAccess %zx", (size_t)peer);
}

static CUresult
mem_address_reserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
		    unsigned long long flags)
{
	*address = hint;
	return fake_driver_called("cuMemAddressReserve %zu", size);
}

static CUresult
mem_address_free(CUdeviceptr address, size_t size)
{
	return fake_driver_called("cuMemAddressFree %zu", size);
}

static CUresult
mem_get_info(size_t *available, size_t *total)
{
	*available = (size_t)6 << 30;
	*total = (size_t)8 << 30;
	return fake_driver_called("cuMemGetInfo");
}

static CUresult
host_alloc(void **memory, size_t size, unsigned int flags)
{
	CUresult result = fake_driver_called("cuMemHostAlloc %zu", size);

	if (result == CUDA_SUCCESS)
		*memory = aligned_alloc(4096, size);
	return result;
}

static CUresult
host_register(void *memory, size_t size, unsigned int flags)
{
	CUresult result = fake_driver_called("cuMemHostRegister %p %zu", memory, size);

	/* The driver pins writable pages. */
	if (result == CUDA_SUCCESS)
		memset(memory, *(const char *)memory, 1);
	return result;
}

static CUresult
host_unregister(void *memory)
{
	return fake_driver_called("cuMemHostUnregister %p", memory);
}

static CUresult
host_get_device_pointer(CUdeviceptr *address, void *memory, unsigned int flags)
{
	*address = (uintptr_t)memory;
	return fake_driver_called("cuMemHostGetDevicePointer");
}

static CUresult
htod(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	CUresult result = fake_driver_called("cuMemcpyHtoDAsync %llx %zu", dst, size);

	if (result == CUDA_SUCCESS)
		memcpy((void *)(uintptr_t)dst, src, size);
	return result;
}

static CUresult
dtoh(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	CUresult result = fake_driver_called("cuMemcpyDtoHAsync %llx %zu", src, size);

	if (result == CUDA_SUCCESS)
		memcpy(dst, (void *)(uintptr_t)src, size);
	return result;
}

static CUresult
dtod(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	memmove((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
	return fake_driver_called("cuMemcpyDtoDAsync %llx %llx %zu", dst, src, size);
}

static CUresult
peer_copy(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
	  size_t size, CUstream stream)
{
	memmove((void *)(uintptr_t)dst, (void *)(uintptr_t)src, size);
	return fake_driver_called("cuMemcpyPeerAsync %llx of %zx, %llx of %zx, %zu", dst,
				  (size_t)dst_context, src, (size_t)src_context, size);
}

static CUresult
mem_alloc(CUdeviceptr *address, size_t size)
{
	static uint8_t memory[4 << 20] __attribute__((aligned(4096)));

	assert(size <= sizeof(memory));
	*address = (CUdeviceptr)(uintptr_t)memory;
	return fake_driver_called("cuMemAlloc %zu", size);
}

static void
fill(CUdeviceptr dst, size_t pitch, const void *element, size_t element_size, size_t width,
     size_t height)
{
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			memcpy((uint8_t *)(uintptr_t)dst + y * pitch + x * element_size, element,
			       element_size);
}

static CUresult
set_8(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream)
{
	fill(dst, 0, &value, 1, count, 1);
	return fake_driver_called("cuMemsetD8Async %llx %zu", dst, count);
}

static CUresult
set_16(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream)
{
	fill(dst, 0, &value, 2, count, 1);
	return fake_driver_called("cuMemsetD16Async %llx %zu", dst, count);
}

static CUresult
set_32(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream)
{
	/* Released pages read as zeros and take no memory. */
	if (value || 4 * count < FAKE_GRANULE)
		fill(dst, 0, &value, 4, count, 1);
	else
		assert(!madvise((void *)(uintptr_t)dst, 4 * count, MADV_DONTNEED));
	return fake_driver_called("cuMemsetD32Async %llx %zu", dst, count);
}

static CUresult
set_2d_8(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
	 CUstream stream)
{
	fill(dst, pitch, &value, 1, width, height);
	return fake_driver_called("cuMemsetD2D8Async %zu x %zu", width, height);
}

static CUresult
set_2d_16(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
	  CUstream stream)
{
	fill(dst, pitch, &value, 2, width, height);
	return fake_driver_called("cuMemsetD2D16Async %zu x %zu", width, height);
}

static CUresult
set_2d_32(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
	  CUstream stream)
{
	fill(dst, pitch, &value, 4, width, height);
	return fake_driver_called("cuMemsetD2D32Async %zu x %zu", width, height);
}

static CUresult
stream_create(CUstream *stream, unsigned int flags, int priority)
{
	*stream = (CUstream)0x77;
	return fake_driver_called("cuStreamCreateWithPriority flags %u", flags);
}

static CUresult
stream_synchronize(CUstream stream)
{
	const char *text = fake_driver_kernel_text;

	fake_driver_kernel_text = NULL;
	if (text)
		assert(write(STDOUT_FILENO, text, strlen(text)) == (ssize_t)strlen(text));
	return fake_driver_called("cuStreamSynchronize");
}

static CUresult
stream_destroy(CUstream stream)
{
	return fake_driver_called("cuStreamDestroy");
}

static CUresult
stream_wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	return fake_driver_called("cuStreamWaitEvent");
}

static CUresult
event_create(CUevent *event, unsigned int flags)
{
	*event = (CUevent)0x88;
	return fake_driver_called("cuEventCreate");
}

static CUresult
event_record(CUevent event, CUstream stream)
{
	return fake_driver_called("cuEventRecord");
}

static CUresult
event_query(CUevent event)
{
	return fake_driver_events_pending ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult
event_destroy(CUevent event)
{
	return fake_driver_called("cuEventDestroy");
}

static CUresult
context_set_limit(CUlimit limit, size_t value)
{
	return fake_driver_called("cuCtxSetLimit %d to %zu", (int)limit, value);
}

static CUresult
device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	*value = attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
	return CUDA_SUCCESS;
}

void
fake_driver_create(void)
{
	gpd_driver = (struct gpd_driver){
		.cuDeviceGetAttribute = device_get_attribute,
		.cuCtxSetLimit = context_set_limit,
		.cuMemCreate = mem_create,
		.cuMemRelease = mem_release,
		.cuMemMap = mem_map,
		.cuMemUnmap = mem_unmap,
		.cuMemSetAccess = mem_set_access,
		.cuMemAddressReserve = mem_address_reserve,
		.cuMemAddressFree = mem_address_free,
		.cuMemGetInfo_v2 = mem_get_info,
		.cuMemHostAlloc = host_alloc,
		.cuMemHostRegister_v2 = host_register,
		.cuMemHostUnregister = host_unregister,
		.cuMemHostGetDevicePointer_v2 = host_get_device_pointer,
		.cuMemcpyHtoDAsync_v2 = htod,
		.cuMemcpyDtoHAsync_v2 = dtoh,
		.cuMemcpyDtoDAsync_v2 = dtod,
		.cuMemcpyPeerAsync = peer_copy,
		.cuCtxEnablePeerAccess = enable_peer,
		.cuMemAlloc_v2 = mem_alloc,
		.cuMemsetD8Async = set_8,
		.cuMemsetD16Async = set_16,
		.cuMemsetD32Async = set_32,
		.cuMemsetD2D8Async = set_2d_8,
		.cuMemsetD2D16Async = set_2d_16,
		.cuMemsetD2D32Async = set_2d_32,
		.cuStreamCreateWithPriority = stream_create,
		.cuStreamDestroy_v2 = stream_destroy,
		.cuStreamSynchronize = stream_synchronize,
		.cuStreamWaitEvent = stream_wait_event,
		.cuEventCreate = event_create,
		.cuEventRecord = event_record,
		.cuEventQuery = event_query,
		.cuEventDestroy_v2 = event_destroy,
	};
	fake_driver_add_arrays();
	fake_driver_add_images();
	fake_driver_add_graphs();
	fake_driver_clear_calls();
	failure.function[0] = 0;
	fake_driver_events_pending = false;
}
