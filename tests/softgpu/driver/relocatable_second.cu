/* SPDX-License-Identifier: Apache-2.0 */
__device__ int shared_value = 2;

__device__ __noinline__ int
other(int value)
{
	return value * 2;
}
