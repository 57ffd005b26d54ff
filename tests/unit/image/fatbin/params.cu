// SPDX-License-Identifier: Apache-2.0
// Kernels whose parameters lie in all the ways there are; test_protocol_image_check.c has the
// table.
struct odd {
	char c[13];
};

struct __align__(16) aligned
{
	float x[5];
};

struct empty {
};

struct four_kib {
	char c[4096 - 8];
};

struct largest {
	char c[32764 - 8];
};

extern "C" __global__ void
up_to_the_limit(int *p, largest s)
{
	*p = s.c[77];
}

extern "C" __global__ void
nothing()
{
}

extern "C" __global__ void
scalars(char a, short b, int c, long long d, float e, double f, int *p, bool q, unsigned char u)
{
	*p = a + b + c + d + e + f + q + u;
}

extern "C" __global__ void
structs(odd a, char c, aligned b, odd d, empty e, int *p)
{
	*p = a.c[1] + c + b.x[2] + d.c[3];
}

extern "C" __global__ void
odd_end(int *p, odd a)
{
	*p = a.c[1];
}

extern "C" __global__ void
up_to_the_old_limit(int *p, four_kib s)
{
	*p = s.c[77];
}

extern "C" __global__ void
unused(int a, float4 b, const __grid_constant__ odd c)
{
}

template <class T, int N>
__global__ void
of_template(T a, T (*b)[N], const T *__restrict__ c)
{
	(*b)[0] = a + c[1];
}

template __global__ void of_template<double, 3>(double, double (*)[3], const double *__restrict__);

// Nobody should: what is passed depends on where the code runs.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
typedef int number;
#else
typedef long long number;
#endif

extern "C" __global__ void
of_device(int *p, number n)
{
	*p = n;
}
