// SPDX-License-Identifier: Apache-2.0
// Variables of all kinds; test_protocol_image_variables.c has the table of their sizes.
struct odd {
	char c[13];
};

extern "C" {
__device__ int plain;
__managed__ double of_both[5] = { 1 };
__device__ odd odds[3];
__device__ double begun[5] = { 1, 2, 3, 4, 5 };
__device__ char text[] = "a, \"b\"; {c}";
__device__ float4 vectors[2][3];
__device__ unsigned char byte;
__constant__ short constants[7];
__constant__ long long begun_constant = 8;
__device__ int *pointer = &plain;
__device__ char large[3 << 20];
__global__ void
use(int *p)
{
	plain = p[0];
	odds[p[1]].c[2] = constants[p[2]] + begun_constant + text[p[3]];
	begun[p[4]] = *pointer;
	vectors[1][p[5] % 3].y = byte++;
	large[p[6]] = 1;
}
}

// Nobody should: what is copied depends on where the code runs.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
typedef int number;
#else
typedef long long number;
#endif

extern "C" {
__device__ number of_device = 3;
}

template <int N> __device__ int of_template[N];

__global__ void
use_more(int *p)
{
	of_device += *p;
	of_template<9>[*p] = 1;
}
