/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: physical memory and memory pools shared between processes by file descriptors.
 * The descriptor is a sealed memory file that contains a struct gp_ipc_handle. Access is granted by
 * the daemon's secret in the handle, not by the file. CUmemPoolPtrExportData is such a handle
 * itself.
 */
#include "base/file_limit.h"
#include "client/base/log.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/memory/ipc_export.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/memory.h"
#include "client/memory/physical_memory.h"
#include "client/memory/virtual_memory.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Returns -1 if no descriptor could be created. */
static int
descriptor_create(const struct gp_ipc_handle *ipc_handle)
{
	int fd = memfd_create("gpupool-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct gp_sigxfsz limit;
	ssize_t written;

	if (fd < 0)
		return -1;
	gp_sigxfsz_block(&limit);
	written = write(fd, ipc_handle, sizeof(*ipc_handle));
	gp_sigxfsz_restore(&limit);
	if (written == (ssize_t)sizeof(*ipc_handle) && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

/* Returns false for a descriptor that descriptor_create() did not make. */
static bool
descriptor_read(int fd, enum gp_ipc_kind kind, struct gp_ipc_handle *ipc_handle)
{
	const int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	struct stat status;

	return seals >= 0 && (seals & SEALS) == SEALS && fstat(fd, &status) == 0 &&
	       status.st_size == (off_t)sizeof(*ipc_handle) &&
	       pread(fd, ipc_handle, sizeof(*ipc_handle), 0) == (ssize_t)sizeof(*ipc_handle) &&
	       gpc_ipc_handle_is_of_kind(ipc_handle, kind);
}

/* Fabric handles share memory between the machines of an NVIDIA cluster, which is not supported. */
static CUresult
handle_type_check(CUmemAllocationHandleType type)
{
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return CUDA_ERROR_NOT_SUPPORTED;
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_SUCCESS
								: CUDA_ERROR_INVALID_VALUE;
}

/* Checks the arguments that all calls with a shareable handle have. */
static CUresult
sharing_enter(const void *out, CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS && (!out || flags))
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? handle_type_check(type) : result;
}

static CUresult
memory_export(CUmemGenericAllocationHandle handle, int *fd_p)
{
	struct gpc_physical *allocation = gpc_physical_get(handle);
	CUresult result = CUDA_SUCCESS;

	if (!allocation ||
	    !(allocation->prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		return CUDA_ERROR_INVALID_VALUE;
	/* Host memory is a file of this machine: export the file itself. */
	if (allocation->host_fd >= 0) {
		*fd_p = fcntl(allocation->host_fd, F_DUPFD_CLOEXEC, 0);
		atomic_store(&gpc_host_memory_exchanged, true);
		return *fd_p < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
	}
	/* Copies that have already returned may still be running: wait for them. Later copies of
	 * exported memory are synchronous (pointer.h). */
	if (!allocation->may_be_mapped_elsewhere)
		result = gpc_memory_settle(allocation->device->primary);
	if (result == CUDA_SUCCESS)
		result = gpc_physical_export(allocation);
	if (result != CUDA_SUCCESS)
		return result;
	*fd_p = descriptor_create(&allocation->export->ipc_handle);
	return *fd_p < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
				 CUmemAllocationHandleType handleType, unsigned long long flags)
{
	CUresult result = sharing_enter(shareableHandle, handleType, flags);
	int fd = -1;

	if (result == CUDA_SUCCESS)
		result = gpc_virtual_memory_lock();
	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_virtual_memory_unlock(memory_export(handle, &fd));
	if (result == CUDA_SUCCESS)
		memcpy(shareableHandle, &fd, sizeof(fd));
	return result;
}

/* The device must be of the daemon of the current context or, without one, of the first daemon.
 * Returns NULL if that daemon's session has no such device, and logs it, because NCCL treats the
 * error as fatal. */
static struct gpc_device *
device_find_by_remote(int remote)
{
	const struct gpc_context *current = gpc_context_get_current();
	const struct gpc_session *session = current ? current->scope.session : gpc_session_get();

	for (int i = 0; i < gpc_device_count(); i++) {
		struct gpc_device *device = gpc_device_get(i);

		if (device && device->session == session && device->remote == remote)
			return device;
	}
	gpc_log_always("cannot import memory of another process: its GPU is not in this session");
	return NULL;
}

static CUresult
memory_import(const struct gp_ipc_handle *ipc_handle, CUmemGenericAllocationHandle *handle)
{
	struct gpc_device *device = device_find_by_remote(ipc_handle->device);

	if (!device || ipc_handle->mapping == 0 ||
	    ipc_handle->mapping % gpc_session_facts(device->session)->granularity)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_physical_open(device, ipc_handle, handle);
}

CUresult
gpc_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
				   CUmemAllocationHandleType shHandleType)
{
	struct gp_ipc_handle ipc_handle;
	CUresult result = sharing_enter(handle, shHandleType, 0);

	if (result == CUDA_SUCCESS)
		result = gpc_virtual_memory_lock();
	if (result != CUDA_SUCCESS)
		return result;
	/* The pointer argument contains the descriptor itself. */
	if (!descriptor_read((int)(intptr_t)osHandle, GP_IPC_PHYSICAL, &ipc_handle))
		return gpc_virtual_memory_unlock(
			gpc_physical_open_host((int)(intptr_t)osHandle, handle));
	return gpc_virtual_memory_unlock(memory_import(&ipc_handle, handle));
}

/* Pools */

_Static_assert(sizeof(CUmemPoolPtrExportData) == sizeof(struct gp_ipc_handle), "it holds one");

static CUresult
pool_export(CUmemoryPool pool, int *fd_p)
{
	struct gp_ipc_handle ipc_handle;
	CUresult result = gpc_pool_export_file(pool, fd_p);

	if (result != CUDA_ERROR_NOT_SUPPORTED)
		return result;
	result = gpc_pool_export(pool, &ipc_handle);
	if (result != CUDA_SUCCESS)
		return result;
	*fd_p = descriptor_create(&ipc_handle);
	return *fd_p < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
				     CUmemAllocationHandleType handleType, unsigned long long flags)
{
	CUresult result = sharing_enter(handle_out, handleType, flags);
	int fd = -1;

	if (result == CUDA_SUCCESS)
		result = pool_export(pool, &fd);
	if (result == CUDA_SUCCESS)
		memcpy(handle_out, &fd, sizeof(fd));
	return result;
}

CUresult
gpc_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
				       CUmemAllocationHandleType handleType,
				       unsigned long long flags)
{
	struct gp_ipc_handle ipc_handle;
	struct gpc_device *device;
	CUresult result = sharing_enter(pool_out, handleType, flags);

	if (result != CUDA_SUCCESS)
		return result;
	if (!descriptor_read((int)(intptr_t)handle, GP_IPC_POOL, &ipc_handle))
		return gpc_pool_import_file((int)(intptr_t)handle, pool_out);
	device = device_find_by_remote(ipc_handle.device);
	return device ? gpc_pool_import(device, &ipc_handle, pool_out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	struct gp_ipc_handle ipc_handle;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!shareData_out)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_pool_export_block(ptr, &ipc_handle);
	if (result == CUDA_SUCCESS)
		memcpy(shareData_out, &ipc_handle, sizeof(ipc_handle));
	return result;
}

CUresult
gpc_cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool,
			   CUmemPoolPtrExportData *shareData)
{
	struct gp_ipc_handle ipc_handle;
	uint64_t address;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ptr_out || !shareData)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&ipc_handle, shareData, sizeof(ipc_handle));
	result = gpc_pool_import_block(pool, &ipc_handle, &address);
	if (result == CUDA_SUCCESS)
		*ptr_out = address;
	return result;
}
