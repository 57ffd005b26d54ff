/* SPDX-License-Identifier: Apache-2.0 */
extern "C" __global__ void
vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockDim.x * blockIdx.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void
dot(const float *a, const float *b, float *out, int n)
{
	__shared__ float part[256];
	float sum = 0;

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		sum += a[i] * b[i];
	part[threadIdx.x] = sum;
	__syncthreads();
	for (int half = blockDim.x / 2; half; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		*out = part[0];
}
