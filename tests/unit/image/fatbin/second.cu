/* SPDX-License-Identifier: Apache-2.0 */
extern "C" __global__ void
scale(float *a, float by, int n)
{
	int i = blockDim.x * blockIdx.x + threadIdx.x;

	if (i < n)
		a[i] *= by;
}
