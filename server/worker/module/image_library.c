/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/image_library.h"

#include "protocol/image_info.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/module/image.h"
#include "server/worker/module/library.h"
#include "server/worker/module/unpacking.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>

struct gpd_image *
gpd_image_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_IMAGE, id);
}

static void
flag_set(struct gpd_session *session, void *arg, CUresult result)
{
	__atomic_store_n((bool *)arg, true, __ATOMIC_RELEASE);
}

/* The description that the client received at the load applies to the new library, too. */
static CUresult
load_again(struct gpd_session *session, struct gpd_image *image, int device)
{
	return gpd_library_get(session, image->blob, device, false, (struct gp_bytes){ 0 },
			       &image->library, NULL);
}

CUresult
gpd_image_refresh(struct gpd_session *session, struct gpd_image *image, int device)
{
	bool idle = false;
	CUresult result;

	if (!image->stale)
		return CUDA_SUCCESS;
	result = gpd_wait_add_all(session, NULL, flag_set, &idle);
	if (result != CUDA_SUCCESS)
		return result;
	while (!__atomic_load_n(&idle, __ATOMIC_ACQUIRE))
		gpd_wait_any(session);
	if (image->library) {
		bool quiesced = gpd_session_quiesce_begin(session, device);

		if (quiesced)
			gpd_library_put(image->library);
		gpd_session_quiesce_end(session, device);
		if (!quiesced)
			return CUDA_ERROR_DEINITIALIZED;
		image->library = NULL;
	}
	result = load_again(session, image, device);
	image->stale = result != CUDA_SUCCESS;
	return result;
}

static CUresult
device_kernel_load_function(struct gpd_session *session, struct gpd_device_kernel *device_kernel)
{
	return gpd_library_function(session, device_kernel->image->library, device_kernel->index,
				    device_kernel->device, &device_kernel->function);
}

CUresult
gpd_image_kernel(struct gpd_session *session, uint64_t kernel, int device,
		 struct gpd_device_kernel *device_kernel)
{
	struct gpd_image *image = gpd_image_get(session, GP_KERNEL_IMAGE(kernel));
	uint32_t index = GP_KERNEL_INDEX(kernel);
	CUresult result =
		image ? gpd_image_refresh(session, image, device) : CUDA_ERROR_INVALID_HANDLE;

	if (result != CUDA_SUCCESS)
		return result;
	if (index >= image->library->kernel_count)
		return CUDA_ERROR_INVALID_HANDLE;
	*device_kernel = (struct gpd_device_kernel){ image, &image->library->kernels[index], NULL,
						     device, index };
	return device_kernel_load_function(session, device_kernel);
}

CUresult
gpd_image_kernel_in_context(struct gpd_session *session, uint64_t kernel,
			    struct gpd_device_kernel *device_kernel)
{
	CUresult result = gpd_context_enter(session, session->current.context);

	if (result == CUDA_SUCCESS)
		result = gpd_image_kernel(session, kernel,
					  gpd_context_device(session, session->current.context),
					  device_kernel);
	return result;
}

CUresult
gpd_function_get(struct gpd_session *session, uint64_t kernel, CUfunction *function_p)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel(session, kernel,
					   gpd_context_device(session, session->current.context),
					   &device_kernel);

	if (result == CUDA_SUCCESS)
		*function_p = atomic_load(&device_kernel.function->driver);
	return result;
}

static int *
dynamic_get_slot(const struct gpd_image *image, int device, uint32_t index)
{
	return &image->dynamic[(size_t)device * image->library->kernel_count + index];
}

int
gpd_image_get_dynamic(const struct gpd_device_kernel *device_kernel)
{
	const struct gpd_image *image = device_kernel->image;
	int set = image->dynamic
			  ? *dynamic_get_slot(image, device_kernel->device, device_kernel->index)
			  : 0;

	if (!image->library->shared)
		return INT_MAX;
	return set ? set - 1 : device_kernel->function->dynamic;
}

CUresult
gpd_image_set_dynamic(const struct gpd_device_kernel *device_kernel, int bytes)
{
	struct gpd_image *image = device_kernel->image;
	CUresult result;

	if (bytes < 0 || bytes == INT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_library_allow(image->library, device_kernel->function, bytes);
	if (result != CUDA_SUCCESS)
		return result;
	if (!image->dynamic)
		image->dynamic = calloc((size_t)gpd_devices.count * image->library->kernel_count,
					sizeof(image->dynamic[0]));
	if (!image->dynamic)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*dynamic_get_slot(image, device_kernel->device, device_kernel->index) = bytes + 1;
	return CUDA_SUCCESS;
}

void
gpd_image_reset_dynamic(struct gpd_image *image)
{
	free(image->dynamic);
	image->dynamic = NULL;
}

/* Applies the settings of the shared library to the image's own. */
static CUresult
dynamic_copy(struct gpd_session *session, struct gpd_image *image, int device)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; result == CUDA_SUCCESS && i < image->library->kernel_count; i++) {
		struct gpd_device_kernel device_kernel = { image, NULL, NULL, device, i };

		if (!*dynamic_get_slot(image, device, i))
			continue;
		result = gpd_device_enter(device);
		if (result == CUDA_SUCCESS)
			result = device_kernel_load_function(session, &device_kernel);
		if (result == CUDA_SUCCESS)
			result = gpd_driver.cuFuncSetAttribute(
				atomic_load(&device_kernel.function->driver),
				CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				*dynamic_get_slot(image, device, i) - 1);
	}
	return result;
}

CUresult
gpd_image_unshare(struct gpd_session *session, struct gpd_image *image, int device)
{
	struct gpd_library *before = image->library;
	const uint64_t size = before->driver_size;
	CUresult result;

	if (!before->shared)
		return CUDA_SUCCESS;
	/* The driver has both libraries until the image is unloaded. */
	result = gpd_unpacking_charge(session, size);
	if (result != CUDA_SUCCESS)
		return result;
	result = load_again(session, image, device);
	if (result != CUDA_SUCCESS) {
		gpd_account_uncharge_code(&session->account, size);
		return result;
	}
	for (int i = 0; image->dynamic && i < gpd_devices.count && result == CUDA_SUCCESS; i++)
		result = dynamic_copy(session, image, i);
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(device);
	if (result != CUDA_SUCCESS) {
		gpd_library_put(image->library);
		gpd_account_uncharge_code(&session->account, size);
		image->library = before;
		return result;
	}
	image->previous_library = before;
	image->code += size;
	session->modules->kernels_changed++;
	gpd_image_reset_dynamic(image);
	return CUDA_SUCCESS;
}

CUresult
gpd_image_make_own(struct gpd_session *session, struct gpd_device_kernel *device_kernel)
{
	CUresult result = gpd_image_unshare(session, device_kernel->image, device_kernel->device);

	if (result != CUDA_SUCCESS)
		return result;
	device_kernel->kernel = &device_kernel->image->library->kernels[device_kernel->index];
	return device_kernel_load_function(session, device_kernel);
}
