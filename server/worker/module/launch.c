/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/launch.h"

#include "gpd_calls.h"
#include "server/worker/copy/copy.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/issue/issue.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/module/library.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/print.h"
#include "server/worker/stream/stream.h"

#include <string.h>

/* Same format on the wire as in memory: u32 id, u32 0, the value. */
_Static_assert(sizeof(CUlaunchAttribute) == 72, "the driver's attributes travel as they are");
_Static_assert(offsetof(CUlaunchAttribute, value) == 8,
	       "the driver's attributes travel as they are");

static bool
is_remoted(CUlaunchAttributeID id)
{
	return gpd_is_launch_number(id) || id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
}

/* An access policy window is a hint and may refer to freed memory; it is dropped if the memory does
 * not belong to the session. */
static bool
attribute_applies(struct gpd_session *session, const CUlaunchAttribute *attribute)
{
	const CUaccessPolicyWindow *window = &attribute->value.accessPolicyWindow;

	return attribute->id != CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW ||
	       (window->num_bytes &&
		gpd_memory_accessible(session, (uintptr_t)window->base_ptr, window->num_bytes));
}

CUresult
gpd_launch_attributes(struct gpd_session *session, int device, struct gp_bytes attributes,
		      CUlaunchConfig *config)
{
	size_t count = attributes.size / sizeof(CUlaunchAttribute);

	if (!count && !attributes.size)
		return CUDA_SUCCESS;
	if (attributes.size % sizeof(CUlaunchAttribute) || count > GPD_LAUNCH_ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(config->attrs, attributes.data, attributes.size);
	config->numAttrs = 0;
	for (size_t i = 0; i < count; i++) {
		CUlaunchAttribute *attribute = &config->attrs[i];

		if (!is_remoted(attribute->id))
			return CUDA_ERROR_NOT_SUPPORTED;
		if (attribute->id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			attribute->value.priority = gpd_schedule_priority(
				&session->account, device, attribute->value.priority);
		if (attribute_applies(session, attribute))
			config->attrs[config->numAttrs++] = *attribute;
	}
	return CUDA_SUCCESS;
}

static bool
is_in_bounds(const struct gpd_device_kernel *device_kernel, const CUlaunchConfig *config,
	     size_t params_size)
{
	if (device_kernel->kernel->params_size != UINT32_MAX &&
	    params_size < device_kernel->kernel->params_size)
		return false;
	/* The driver's maximum may be higher because of another session. */
	return !config->sharedMemBytes ||
	       config->sharedMemBytes <= (unsigned int)gpd_image_get_dynamic(device_kernel);
}

static struct gpd_issue_launch
launch_describe(const struct gpd_device_kernel *device_kernel, const CUlaunchConfig *config,
		struct gp_bytes params)
{
	return (struct gpd_issue_launch){
		.device = device_kernel->device,
		.function = atomic_load(&device_kernel->function->driver),
		.config = *config,
		.params = params.data,
		.params_size = params.size,
		.kernel = device_kernel->kernel->name,
		.dynamic = gpd_image_get_dynamic(device_kernel),
	};
}

static void
log_refusal(const struct gpd_session *session, const struct gpd_issue_launch *kernel_launch)
{
	const CUlaunchConfig *config = &kernel_launch->config;

	gpd_session_log(session, GPD_LOG_DEBUG,
			"kernel %s on device %d is refused: grid %u x %u x %u, block %u x %u x %u, "
			"%u bytes of dynamic shared memory where %d are allowed, %zu of parameters",
			kernel_launch->kernel, kernel_launch->device, config->gridDimX,
			config->gridDimY, config->gridDimZ, config->blockDimX, config->blockDimY,
			config->blockDimZ, config->sharedMemBytes, kernel_launch->dynamic,
			kernel_launch->params_size);
}

void
gpd_launch_failed(struct gpd_issue *issue, const struct gpd_issue_launch *kernel_launch,
		  CUresult result)
{
	struct gpd_session *session =
		(struct gpd_session *)((char *)issue - offsetof(struct gpd_session, issue));

	log_refusal(session, kernel_launch);
	gpd_session_defer(session, result, GP_CALL_gpLaunch);
}

/* false: the caller launches it; nothing is pending in threads then. */
static bool
launch_to_thread(struct gpd_session *session, struct gpd_stream *stream,
		 const struct gpd_device_kernel *device_kernel,
		 const struct gpd_issue_launch *kernel_launch)
{
	/* Such a launch is followed by other driver calls at once. */
	if (device_kernel->image->uses.print || session->trace || session->copies->out) {
		gpd_issue_settle(&session->issue);
		return false;
	}
	return gpd_issue_launch(&session->issue, &stream->launcher, kernel_launch);
}

/* waits: the client waits for the result. */
static CUresult
kernel_launch(struct gpd_session *session, uint64_t kernel, uint32_t stream_id,
	      CUlaunchConfig *config, struct gp_bytes attributes, struct gp_bytes params,
	      bool waits)
{
	CUlaunchAttribute list[GPD_LAUNCH_ATTRIBUTES_MAX];
	size_t params_size = params.size;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER,
		(void *)params.data,
		CU_LAUNCH_PARAM_BUFFER_SIZE,
		&params_size,
		CU_LAUNCH_PARAM_END,
	};
	struct gpd_issue_launch described;
	struct gpd_stream *stream;
	struct gpd_device_kernel device_kernel;
	CUresult result;

	if (params_size > GP_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	config->attrs = list;
	result = gpd_stream_begin(session, stream_id, &stream);
	if (result == CUDA_SUCCESS)
		result = gpd_launch_attributes(session, stream->device, attributes, config);
	if (result == CUDA_SUCCESS)
		result = gpd_image_kernel(session, kernel, stream->device, &device_kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if (__builtin_expect(!is_in_bounds(&device_kernel, config, params_size), 0)) {
		described = launch_describe(&device_kernel, config, params);
		log_refusal(session, &described);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (__builtin_expect(device_kernel.image->uses.malloc, 0))
		atomic_store_explicit(&gpd_devices.worn, GPD_WORN_HEAP, memory_order_relaxed);
	__atomic_store_n(&session->progress.kernel, device_kernel.kernel->name, __ATOMIC_RELEASE);
	config->hStream = stream->driver;
	if (!waits && gpd_issue_wants(&session->issue, stream)) {
		described = launch_describe(&device_kernel, config, params);
		if (launch_to_thread(session, stream, &device_kernel, &described))
			return CUDA_SUCCESS;
	}
	if (__builtin_expect(device_kernel.image->uses.print, 0)) {
		result = gpd_print_begin(session, stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	result = gpd_driver.cuLaunchKernelEx(config, atomic_load(&device_kernel.function->driver),
					     NULL, params_size ? extra : NULL);
	if (__builtin_expect(result != CUDA_SUCCESS, 0)) {
		described = launch_describe(&device_kernel, config, params);
		log_refusal(session, &described);
	}
	if (__builtin_expect(device_kernel.image->uses.print, 0))
		gpd_print_end(session, stream);
	return result;
}

CUresult
gpd_gpLaunch(struct gpd_session *session, const struct gp_args_gpLaunch *args)
{
	return kernel_launch(session, args->kernel, args->stream, &GPD_LAUNCH_CONFIG(args),
			     args->attributes, args->params, false);
}

CUresult
gpd_gpLaunchChecked(struct gpd_session *session, const struct gp_args_gpLaunchChecked *args)
{
	return kernel_launch(session, args->kernel, args->stream, &GPD_LAUNCH_CONFIG(args),
			     args->attributes, args->params, true);
}
