/* SPDX-License-Identifier: Apache-2.0 */
/* What gs_bench runs: every body against every other, a tile of them in shared memory at a time. */
#define TILE 256

extern "C" __global__ void
__launch_bounds__(TILE) nbody(float4 *next, const float4 *bodies, unsigned int count)
{
	__shared__ float4 tile[TILE];
	unsigned int own = blockIdx.x * blockDim.x + threadIdx.x;
	float4 body = bodies[own];
	float x = 0.0f;
	float y = 0.0f;
	float z = 0.0f;

	for (unsigned int first = 0; first < count; first += TILE) {
		tile[threadIdx.x] = bodies[first + threadIdx.x];
		__syncthreads();
#pragma unroll 32
		for (unsigned int i = 0; i < TILE; i++) {
			float4 other = tile[i];
			float dx = other.x - body.x;
			float dy = other.y - body.y;
			float dz = other.z - body.z;
			float square = fmaf(dz, dz, fmaf(dy, dy, fmaf(dx, dx, 0.01f)));
			float inverse = rsqrtf(square);
			float force = other.w * inverse * inverse * inverse;

			x = fmaf(dx, force, x);
			y = fmaf(dy, force, y);
			z = fmaf(dz, force, z);
		}
		__syncthreads();
	}
	next[own] = make_float4(x, y, z, body.w);
}
