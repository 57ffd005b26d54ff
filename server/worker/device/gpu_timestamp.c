/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/gpu_timestamp.h"

#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

/* PTX for every GPU that has a driver; the driver compiles it. */
static const char code[] = ".version 6.0\n"
			   ".target sm_50\n"
			   ".address_size 64\n"
			   ".visible .entry gpupool_timestamp(.param .u64 word)\n"
			   "{\n"
			   "	.reg .u64 %rd<3>;\n"
			   "	ld.param.u64 %rd1, [word];\n"
			   "	mov.u64 %rd2, %globaltimer;\n"
			   "	st.volatile.global.u64 [%rd1], %rd2;\n"
			   "	ret;\n"
			   "}\n";

/* An element is written while the context of its device is created. */
static struct kernel {
	CUfunction function; /* NULL: it does not work */
	/* Launches with priority are supported: the kernel need not wait until all blocks of
	 * earlier kernels have started. */
	bool first;
} kernels[GPD_DEVICES_MAX];

/* Of a library that is loaded once, with the first context: a later context is created while
 * kernels run on other devices, for which loading a library might wait. */
static _Atomic(CUkernel) loaded;

static CUresult
kernel_load(CUfunction *function)
{
	/* Loaded for the life of the process. */
	CUlibrary library;
	CUkernel kernel = atomic_load(&loaded);
	CUresult result = CUDA_SUCCESS;

	if (!kernel)
		result = gpd_driver.cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0);
	if (!kernel && result == CUDA_SUCCESS)
		result = gpd_driver.cuLibraryEnumerateKernels(&kernel, 1, library);
	if (result == CUDA_SUCCESS)
		atomic_store(&loaded, kernel);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuKernelGetFunction(function, kernel);
	return result;
}

static CUresult
kernel_launch(int device, const struct kernel *kernel, CUstream stream,
	      const struct gpd_marker_page *page, uint32_t word)
{
	CUdeviceptr to = page->device + 8 * (CUdeviceptr)word;
	void *params[] = { &to };
	CUlaunchAttribute priority = {
		.id = CU_LAUNCH_ATTRIBUTE_PRIORITY,
		.value.priority = gpd_devices.all[device].priority_greatest,
	};
	const CUlaunchConfig config = {
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = &priority,
		.numAttrs = kernel->first,
	};

	return gpd_driver.cuLaunchKernelEx(&config, kernel->function, params, NULL);
}

/* The page must be zeroed. */
static CUresult
kernel_try(int device, struct kernel *kernel, const struct gpd_marker_page *page)
{
	CUresult result;

	kernel->first = true;
	result = kernel_launch(device, kernel, NULL, page, 0);
	if (result != CUDA_SUCCESS) {
		kernel->first = false;
		result = kernel_launch(device, kernel, NULL, page, 0);
	}
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuCtxSynchronize();
	if (result == CUDA_SUCCESS && !gpd_gpu_timestamp_read(page, 0))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result;
}

void
gpd_gpu_timestamp_start(int device)
{
	struct gpd_marker_page *page = gpd_marker_page_acquire();
	struct kernel kernel = { 0 };
	CUresult result = page ? kernel_load(&kernel.function) : CUDA_ERROR_OUT_OF_MEMORY;
	const char *name = NULL;

	if (result == CUDA_SUCCESS)
		result = kernel_try(device, &kernel, page);
	gpd_marker_page_release(page);
	if (result == CUDA_SUCCESS) {
		kernels[device] = kernel;
		return;
	}
	(void)gpd_driver.cuGetErrorName(result, &name);
	gpd_warning("device %d: the GPU time of sessions is measured less exactly, as the driver "
		    "does not run the kernel that reads the GPU's clock: %s",
		    device, name ? name : "unknown error");
}

void
gpd_gpu_timestamp_stop(int device)
{
	kernels[device] = (struct kernel){ 0 };
	atomic_store(&loaded, NULL);
}

bool
gpd_gpu_timestamp_record(int device, CUstream stream, const struct gpd_marker_page *page,
			 uint32_t word)
{
	const struct kernel *kernel = &kernels[device];

	return kernel->function &&
	       kernel_launch(device, kernel, stream, page, word) == CUDA_SUCCESS;
}

bool
gpd_gpu_timestamp_write_marker(CUstream stream, const struct gpd_marker_page *page, uint32_t word)
{
	return gpd_driver.cuStreamWriteValue32_v2(stream, page->device + 8 * (CUdeviceptr)word, 1,
						  CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}
