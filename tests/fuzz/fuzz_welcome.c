/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of a control message that is a Welcome: devices can be created from a valid one. */
#include "client/connect/connect.h"
#include "client/context/device.h"
#include "client/context/lifecycle.h"
#include "gpc_calls.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
query_everything(int device)
{
	char text[300];
	size_t bytes;
	int value;

	for (int i = 1; i < 1024; i++) {
		if (gpc_cuDeviceGetAttribute(&value, (CUdevice_attribute)i, device) != CUDA_SUCCESS)
			abort();
	}
	if (gpc_cuDeviceGetName(text, sizeof(text), device) != CUDA_SUCCESS ||
	    gpc_cuDeviceGetPCIBusId(text, sizeof(text), device) != CUDA_SUCCESS ||
	    gpc_cuDeviceTotalMem_v2(&bytes, device) != CUDA_SUCCESS)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Gpupool__ControlMessage *message = gp_control_decode(data, size);
	const char *what;

	if (message && message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_WELCOME &&
	    gpc_welcome_check(message->welcome, &what) == 0) {
		struct gpc_device_source sources[GPC_DEVICES_MAX] = { 0 };
		int count = (int)message->welcome->n_devices;

		for (int i = 0; i < count; i++) {
			sources[i].device = message->welcome->devices[i];
			sources[i].daemon = i;
		}
		if (gpc_devices_create(sources, count) != 0)
			abort();
		atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
		for (int i = 0; i < gpc_device_count(); i++)
			query_everything(i);
		gpc_devices_destroy();
	}
	gp_control_free(message);
	return 0;
}
