/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's own device functions, as its headers and its math library make them. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

template <typename T>
__device__ T
function(int which, T x, T y)
{
	switch (which) {
	case 0:
		return sin(x);
	case 1:
		return cos(x);
	case 2:
		return tan(x);
	case 3:
		return exp(x);
	case 4:
		return log(fabs(x));
	case 5:
		return pow(fabs(x), y);
	case 6:
		return sqrt(fabs(x));
	case 7:
		return cbrt(x);
	case 8:
		return erf(x);
	case 9:
		return tgamma(fabs(x) + 1);
	case 10:
		return fmod(x, y);
	case 11:
		return atan2(x, y);
	case 12:
		return hypot(x, y);
	case 13:
		return floor(x) + ceil(y) * 100;
	case 14:
		return rint(x) + trunc(y) * 100;
	case 15:
		return asinh(x);
	case 16:
		return log1p(fabs(x));
	case 17:
		return ldexp(x, 5) + round(y);
	case 18:
		return exp10(x / 8);
	case 19:
		return fdim(x, y);
	case 20:
		return lgamma(fabs(x) + 1);
	case 21:
		return remainder(x, y);
	case 22:
		return rsqrt(fabs(x) + 1);
	default:
		return fma(x, y, x / y);
	}
}

extern "C" __global__ void
floats(const float *x, const float *y, float *out, int which)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;

	out[t] = function<float>(which, x[t], y[t]);
}

extern "C" __global__ void
doubles(const double *x, const double *y, double *out, int which)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;

	out[t] = function<double>(which, x[t], y[t]);
}

extern "C" __global__ void
integers(const unsigned int *x, const unsigned int *y, unsigned int *out)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned int a = x[t];
	unsigned int b = y[t];
	unsigned long long wide = (unsigned long long)a << 32 | b;

	out += t * 16;
	out[0] = __clz(a) * 100 + __ffs(b);
	out[1] = __brev(a) ^ __popc(b);
	out[2] = __byte_perm(a, b, 0x3715);
	out[3] = __funnelshift_l(a, b, 7);
	out[4] = __umulhi(a, b) + __mul24(a, b);
	out[5] = __mulhi((int)a, (int)b);
	out[6] = wide / (b | 1);
	out[7] = wide % (a | 1);
	out[8] = (long long)wide / ((int)b | 1);
	out[9] = __vadd4(a, b);
	out[10] = __vabsdiffu4(a, b);
	out[11] = __usad(a, b, 5);
	out[12] = a / (b | 1) + a % (b | 1);
	out[13] = (int)a / ((int)b | 1);
	out[14] = __dp4a(a, b, 3u);
	out[15] = (unsigned char)a * (short)b;
}

extern "C" __global__ void
halves(const float *x, const float *y, float *out)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	__half a = __float2half(x[t]);
	__half b = __float2half(y[t]);
	__half2 c = __hfma2(__halves2half2(a, b), __halves2half2(b, a), __half2half2(a));
	__nv_bfloat16 d = __float2bfloat16(x[t]);

	out += t * 6;
	out[0] = __half2float(a + b);
	out[1] = __half2float(a * b);
	out[2] = __low2float(c) + __high2float(c);
	out[3] = __hlt(a, b) ? 1.0f : 0.0f;
	out[4] = __bfloat162float(d);
	out[5] = __half2int_rn(a) + __half2float(__hmax(a, b));
}

extern "C" __global__ void
reductions(const int *in, int *out)
{
	auto block = cg::this_thread_block();
	auto tile = cg::tiled_partition<8>(block);
	int t = threadIdx.x;
	int value = in[t];

	out[t] = cg::reduce(tile, value, cg::plus<int>());
	out[t + 64] = cg::reduce(cg::tiled_partition<32>(block), value, cg::greater<int>());
	out[t + 128] = tile.shfl_xor(value, 3) + tile.any(value == in[0]);
}
