/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attributes: prints all attributes of all devices, one per line: device, number, name, value or
 * error.
 *
 * Its output natively and over gpupool is compared with diff. The names are those of the cuda.h
 * that the program is built with.
 */
#include "measure.h"

#include <cuda.h>

static const struct {
	int number;
	const char *name;
} attributes[] = {
#include "attributes.inc"
};

int
main(void)
{
	int count;

	CHECK(cuInit(0));
	CHECK(cuDeviceGetCount(&count));
	for (int i = 0; i < count; i++) {
		CUdevice device;

		CHECK(cuDeviceGet(&device, i));
		for (const auto &attribute : attributes) {
			int value = 0;
			CUresult result = cuDeviceGetAttribute(
				&value, (CUdevice_attribute)attribute.number, device);

			printf("%d %3d %-60s ", i, attribute.number, attribute.name);
			if (result == CUDA_SUCCESS)
				printf("%d\n", value);
			else
				printf("error %d\n", (int)result);
		}
	}
	return 0;
}
