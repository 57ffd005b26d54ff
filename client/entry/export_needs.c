/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the rest of the client that the private driver tables call. */
#include "client/context/context.h"
#include "client/entry/export_table.h"
#include "client/guard/guard.h"
#include "client/module/module.h"
#include "gpc_calls.h"

#include <string.h>

CUcontext
gpc_context_get_current_token(void)
{
	struct gpc_context *context = gpc_context_get_current();

	return context ? context->handle.token : NULL;
}

CUresult
gpc_context_primary_handle(CUcontext *ctx_p, CUdevice dev)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	if (result == CUDA_SUCCESS)
		*ctx_p = device->primary->handle.token;
	return result;
}

CUresult
gpc_context_id(CUcontext ctx, uint64_t *id_p)
{
	unsigned long long id = 0;
	CUresult result = gpc_cuCtxGetId(ctx, &id);

	if (result == CUDA_SUCCESS)
		*id_p = id;
	return result;
}

CUresult
gpc_module_load(CUmodule *module_p, const void *image)
{
	return gpc_cuModuleLoadData(module_p, image);
}

static int
functions_visit(CUmodule hmod, void (*visit)(void *, CUfunction, uint64_t), void *arg)
{
	struct gpc_module *module;
	int count = 0;

	if (gpc_module_lookup(hmod, &module) != CUDA_SUCCESS)
		return 0;
	for (uint32_t i = 0; i < module->image->info->kernel_count; i++) {
		struct gpc_function *function = gpc_function_list_get(&module->functions, i);
		struct gpc_guard before;

		if (!function)
			break;
		before = gpc_guard_clear();
		visit(arg, function->handle.token, 0);
		gpc_guard_set(before);
		count++;
	}
	return count;
}

int
gpc_module_each_function(CUmodule hmod, void (*visit)(void *, CUfunction, uint64_t), void *arg)
{
	int count = 0;

	if (gpc_guard_enter()) {
		count = functions_visit(hmod, visit, arg);
		gpc_guard_leave();
	}
	return count;
}

int
gpc_devices_get_identity(struct gpc_device_identity *out, int max)
{
	int count = gpc_device_count() < max ? gpc_device_count() : max;

	for (int i = 0; i < count; i++) {
		const struct gpc_device *device = gpc_device_get(i);

		memcpy(out[i].uuid, device->uuid.bytes, sizeof(out[i].uuid));
		out[i].pci_domain = device->pci_domain;
		out[i].pci_bus = device->pci_bus;
		out[i].pci_device = device->pci_device;
	}
	return count;
}
