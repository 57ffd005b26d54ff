/* SPDX-License-Identifier: Apache-2.0 */
extern __device__ int other(int value);
extern __device__ int shared_value;

extern "C" __global__ void
call_other(int *out)
{
	*out = other(20) + shared_value;
}
