/* SPDX-License-Identifier: Apache-2.0 */
/* Device code that driverapi loads explicitly, as PTX and as a fatbin. */
extern "C" {

__constant__ float offset;

__global__ void
saxpy(int count, float a, const float *x, float *y)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		y[i] = a * x[i] + y[i] + offset;
}
}
