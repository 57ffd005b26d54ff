/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/allocation.h"

#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/object.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

struct gs_allocation {
	struct gs_object object;
	struct gs_allocation *prev, *next; /* list `all` */
	/* Number of handles from cuMemCreate or imports; each is a reference. */
	unsigned int handles;
	int device;
	int fd;
	size_t size;
	dev_t dev;
	ino_t ino;
	bool exportable, tiles;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gs_allocation *all;

bool
gs_is_host(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

static bool
charge(int device, size_t size)
{
	return device == GS_HOST || gs_space_charge(device, size);
}

static void
discharge(int device, size_t size)
{
	if (device != GS_HOST)
		gs_space_discharge(device, size);
}

static void
allocation_destroy(struct gs_object *object)
{
	struct gs_allocation *allocation = (struct gs_allocation *)object;

	pthread_mutex_lock(&lock);
	DL_DELETE(all, allocation);
	pthread_mutex_unlock(&lock);
	close(allocation->fd);
	discharge(allocation->device, allocation->size);
	free(allocation);
}

struct gs_allocation *
gs_allocation_get(CUmemGenericAllocationHandle handle)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return gs_object_get((const void *)handle, GS_KIND_ALLOCATION);
}

void
gs_allocation_put(struct gs_allocation *allocation)
{
	gs_object_put(&allocation->object);
}

int
gs_allocation_device(const struct gs_allocation *allocation)
{
	return allocation->device;
}

size_t
gs_allocation_size(const struct gs_allocation *allocation)
{
	return allocation->size;
}

bool
gs_allocation_is_for_tiles(const struct gs_allocation *allocation)
{
	return allocation->tiles;
}

int
gs_allocation_fd(const struct gs_allocation *allocation)
{
	return allocation->fd;
}

/* Takes ownership of the descriptor, also on failure. */
static CUresult
adopt(int fd, size_t size, int device, bool exportable, bool tiles,
      CUmemGenericAllocationHandle *handle)
{
	struct gs_allocation *allocation = NULL;
	struct stat st;

	if (!charge(device, size)) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (fstat(fd, &st) == 0)
		allocation = calloc(1, sizeof(*allocation));
	if (!allocation) {
		discharge(device, size);
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_object_init(&allocation->object, GS_KIND_ALLOCATION, NULL, allocation_destroy);
	allocation->handles = 1;
	allocation->device = device;
	allocation->fd = fd;
	allocation->size = size;
	allocation->dev = st.st_dev;
	allocation->ino = st.st_ino;
	allocation->exportable = exportable;
	allocation->tiles = tiles;
	pthread_mutex_lock(&lock);
	DL_APPEND(all, allocation);
	pthread_mutex_unlock(&lock);
	gs_object_publish(&allocation->object);
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)allocation;
	return CUDA_SUCCESS;
}

static CUresult
check_prop(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST &&
	    prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && prop->location.id != 0)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!gs_is_host(&prop->location) && prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!gs_is_host(&prop->location) && gs_check_device(prop->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
	    prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
			      CUmemAllocationGranularity_flags option)
{
	CUresult r = gs_enter_device();

	if (!r)
		r = check_prop(prop);
	if (r)
		return r;
	if (!granularity || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
			     option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = GS_GRANULARITY;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
	    unsigned long long flags)
{
	CUresult r = gs_enter_device();
	int fd;

	if (!r)
		r = gs_failure();
	if (!r)
		r = check_prop(prop);
	if (r)
		return r;
	if (!handle || !size || size % GS_GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > gs_device_memory())
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = memfd_create("gpupool-device-memory", MFD_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (ftruncate(fd, (off_t)size)) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return adopt(fd, size, gs_is_host(&prop->location) ? GS_HOST : prop->location.id,
		     prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE,
		     prop->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL, handle);
}

CUresult CUDAAPI
cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct gs_allocation *allocation;
	CUresult r = gs_enter_device();

	if (!r)
		r = gs_failure();
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	allocation = gs_allocation_get(handle);
	if (allocation && --allocation->handles == 0)
		(void)gs_object_retire(allocation, GS_KIND_ALLOCATION);
	pthread_mutex_unlock(&lock);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	gs_allocation_put(allocation);
	/* The reference of the handle. */
	gs_allocation_put(allocation);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
			     CUmemAllocationHandleType type, unsigned long long flags)
{
	struct gs_allocation *allocation;
	CUresult r = gs_enter_device();
	int fd = -1;

	if (!r)
		r = gs_failure();
	if (r)
		return r;
	if (!shareable || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	allocation = gs_allocation_get(handle);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation->exportable)
		r = CUDA_ERROR_INVALID_VALUE;
	else if ((fd = fcntl(allocation->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	gs_allocation_put(allocation);
	if (!r)
		*(int *)shareable = fd;
	return r;
}

/* Checks whether the memory was exported by this process. */
static bool
import_known(const struct stat *st, CUmemGenericAllocationHandle *handle)
{
	struct gs_allocation *allocation;

	pthread_mutex_lock(&lock);
	DL_FOREACH(all, allocation)
	{
		if (allocation->dev == st->st_dev && allocation->ino == st->st_ino &&
		    gs_object_try_ref(&allocation->object))
			break;
	}
	if (allocation) {
		if (allocation->handles++ == 0)
			gs_object_publish(&allocation->object);
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)allocation;
	}
	pthread_mutex_unlock(&lock);
	return allocation != NULL;
}

CUresult CUDAAPI
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
			       CUmemAllocationHandleType type)
{
	CUresult r = gs_enter_device();
	struct stat st;
	int fd;

	if (!r)
		r = gs_failure();
	if (r)
		return r;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	fd = (int)(intptr_t)os_handle;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size ||
	    (size_t)st.st_size % GS_GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	if (import_known(&st, handle))
		return CUDA_SUCCESS;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return adopt(fd, (size_t)st.st_size, gs_device_current(), true, false, handle);
}

void
gs_allocation_destroy_all(void)
{
	struct gs_allocation *allocation;

	while ((allocation = gs_object_retire_any(GS_KIND_ALLOCATION))) {
		unsigned int handles;

		pthread_mutex_lock(&lock);
		handles = allocation->handles;
		allocation->handles = 0;
		pthread_mutex_unlock(&lock);
		while (handles--)
			gs_allocation_put(allocation);
	}
}
