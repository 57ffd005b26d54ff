/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation.h"

#include <cstdio>
#include <cstdlib>

static __device__ __forceinline__ float
inverse_root(float value)
{
	return rsqrtf(value);
}

static __device__ __forceinline__ double
inverse_root(double value)
{
	return rsqrt(value);
}

template <typename real>
static __device__ __forceinline__ void
attract(vec4<real> &sum, const vec4<real> &at, const vec4<real> &body, real softening2)
{
	real dx = body.x - at.x;
	real dy = body.y - at.y;
	real dz = body.z - at.z;
	real r2 = fma(dz, dz, fma(dy, dy, fma(dx, dx, softening2)));
	real inverse = inverse_root(r2);
	real f = body.w * inverse * (inverse * inverse);
	sum.x = fma(dx, f, sum.x);
	sum.y = fma(dy, f, sum.y);
	sum.z = fma(dz, f, sum.z);
}

/*
 * A thread per body. A block iterates over all bodies in tiles of its own size: each thread loads a
 * body into shared memory, then all threads read the whole tile, each word broadcast.
 */
template <typename real>
static __global__ void
kick_drift(vec4<real> *__restrict__ next, const vec4<real> *__restrict__ position,
	   vec4<real> *__restrict__ velocity, int count, real softening2, real dt)
{
	extern __shared__ __align__(16) unsigned char shared[];
	vec4<real> *tile = reinterpret_cast<vec4<real> *>(shared);
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	const vec4<real> nobody = {};
	vec4<real> at = i < count ? position[i] : nobody;
	vec4<real> sum = nobody;

	for (int start = 0; start < count; start += blockDim.x) {
		int j = start + threadIdx.x;
		/* Beyond the end, a body without mass, which attracts nothing. */
		tile[threadIdx.x] = j < count ? position[j] : nobody;
		__syncthreads();
		/* Whole warps: the block size is a multiple of 32. */
		for (int k = 0; k < blockDim.x; k += 32) {
#pragma unroll
			for (int u = 0; u < 32; u++)
				attract(sum, at, tile[k + u], softening2);
		}
		__syncthreads();
	}
	if (i >= count)
		return;

	vec4<real> v = velocity[i];
	v.x = fma(sum.x, dt, v.x);
	v.y = fma(sum.y, dt, v.y);
	v.z = fma(sum.z, dt, v.z);
	at.x = fma(v.x, dt, at.x);
	at.y = fma(v.y, dt, at.y);
	at.z = fma(v.z, dt, at.z);
	velocity[i] = v;
	next[i] = at;
}

template <typename real>
static std::vector<vec4<real>>
convert(const std::vector<vec4<double>> &from)
{
	std::vector<vec4<real>> to;

	to.reserve(from.size());
	for (const vec4<double> &v : from)
		to.push_back({ (real)v.x, (real)v.y, (real)v.z, (real)v.w });
	return to;
}

template <typename real>
static std::vector<vec4<double>>
fetch(const vec4<real> *device, int count)
{
	std::vector<vec4<real>> copy(count);
	std::vector<vec4<double>> wide;

	CUDA(cudaMemcpy(copy.data(), device, count * sizeof(*device), cudaMemcpyDeviceToHost));
	wide.reserve(count);
	for (const vec4<real> &v : copy)
		wide.push_back({ v.x, v.y, v.z, v.w });
	return wide;
}

void
check_cuda(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "nbody: %s: %s (%s)\n", what, cudaGetErrorString(error),
		cudaGetErrorName(error));
	exit(1);
}

template <typename real>
simulation<real>::simulation(const system_state<double> &start, int threads)
    : count((int)start.position.size()), block_size(threads)
{
	size_t size = count * sizeof(vec4<real>);
	std::vector<vec4<real>> p = convert<real>(start.position);
	std::vector<vec4<real>> v = convert<real>(start.velocity);

	CUDA(cudaMalloc(&position[0], size));
	CUDA(cudaMalloc(&position[1], size));
	CUDA(cudaMalloc(&velocity, size));
	CUDA(cudaMemcpy(position[0], p.data(), size, cudaMemcpyHostToDevice));
	CUDA(cudaMemcpy(velocity, v.data(), size, cudaMemcpyHostToDevice));
}

template <typename real> simulation<real>::~simulation()
{
	cudaFree(position[0]);
	cudaFree(position[1]);
	cudaFree(velocity);
}

template <typename real>
void
simulation<real>::step(int steps)
{
	int blocks = (count + block_size - 1) / block_size;
	size_t tile_size = block_size * sizeof(vec4<real>);

	for (int i = 0; i < steps; i++) {
		kick_drift<real><<<blocks, block_size, tile_size>>>(
			position[1 - current], position[current], velocity, count,
			(real)(softening * softening), (real)time_step);
		current = 1 - current;
	}
	CUDA(cudaGetLastError());
}

template <typename real>
system_state<double>
simulation<real>::read() const
{
	return { fetch(position[current], count), fetch(velocity, count) };
}

template class simulation<float>;
template class simulation<double>;
