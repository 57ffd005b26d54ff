/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's device functions against the C library's. */
#include "common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 512
#define FUNCTIONS 24

GS_TEST_MODULE("math")

static double
reference(int which, double x, double y)
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
		return pow(10, x / 8);
	case 19:
		return fdim(x, y);
	case 20:
		return lgamma(fabs(x) + 1);
	case 21:
		return remainder(x, y);
	case 22:
		return 1 / sqrt(fabs(x) + 1);
	default:
		return fma(x, y, x / y);
	}
}

static void
check_close(int which, double x, double y, double got, double want, double tolerance)
{
	if (fabs(got - want) <= tolerance * (fabs(want) + 1) || (isnan(got) && isnan(want)))
		return;
	fail_msg("function %d of %.9g and %.9g: %.17g instead of %.17g", which, x, y, got, want);
}

/* Numbers with few bits, so that both precisions mean the same. */
static double
sample(int i, int k)
{
	unsigned int bits = (unsigned int)i * 2654435761u + (unsigned int)k * 40503u;

	return ((double)(bits >> 16 & 0x3fff) - 8191.5) / 1024;
}

static void
run(const char *kernel, const void *params, size_t size)
{
	gs_test_run(module, &(struct gs_test_launch){ .kernel = kernel,
						      .blocks = COUNT / 64,
						      .threads = 64,
						      .params = params,
						      .params_size = size });
}

TEST(functions_of_floats_are_close_to_the_c_library)
{
	struct {
		float *x, *y, *out;
		int which;
	} p = { gs_test_memory(COUNT * 4), gs_test_memory(COUNT * 4), gs_test_memory(COUNT * 4),
		0 };

	for (p.which = 0; p.which < FUNCTIONS; p.which++) {
		for (int i = 0; i < COUNT; i++) {
			p.x[i] = (float)sample(i, 1);
			p.y[i] = (float)sample(i, 2);
		}
		run("floats", &p, sizeof(p));
		for (int i = 0; i < COUNT; i++)
			check_close(p.which, p.x[i], p.y[i], p.out[i],
				    reference(p.which, p.x[i], p.y[i]), 2e-6);
	}
}

TEST(functions_of_doubles_are_close_to_the_c_library)
{
	struct {
		double *x, *y, *out;
		int which;
	} p = { gs_test_memory(COUNT * 8), gs_test_memory(COUNT * 8), gs_test_memory(COUNT * 8),
		0 };

	for (p.which = 0; p.which < FUNCTIONS; p.which++) {
		for (int i = 0; i < COUNT; i++) {
			p.x[i] = sample(i, 1);
			p.y[i] = sample(i, 2);
		}
		run("doubles", &p, sizeof(p));
		for (int i = 0; i < COUNT; i++)
			check_close(p.which, p.x[i], p.y[i], p.out[i],
				    reference(p.which, p.x[i], p.y[i]), 1e-13);
	}
}

static uint32_t
apply_to_bytes(uint32_t a, uint32_t b, uint32_t (*operation)(uint32_t, uint32_t))
{
	uint32_t result = 0;

	for (int i = 0; i < 32; i += 8)
		result |= (operation(a >> i & 0xff, b >> i & 0xff) & 0xff) << i;
	return result;
}

static uint32_t
sum(uint32_t a, uint32_t b)
{
	return a + b;
}

static uint32_t
distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

static uint32_t
reversed(uint32_t value)
{
	uint32_t result = 0;

	for (int i = 0; i < 32; i++)
		result |= (value >> i & 1) << (31 - i);
	return result;
}

static int32_t
low24(uint32_t value)
{
	return (int32_t)(value << 8) >> 8;
}

static uint32_t
dot(uint32_t a, uint32_t b, uint32_t c)
{
	for (int i = 0; i < 32; i += 8)
		c += (a >> i & 0xff) * (b >> i & 0xff);
	return c;
}

static void
check_integers(const uint32_t *out, uint32_t a, uint32_t b)
{
	uint64_t wide = (uint64_t)a << 32 | b;
	const uint32_t want[16] = {
		(uint32_t)((a ? __builtin_clz(a) : 32) * 100 + __builtin_ffs((int)b)),
		reversed(a) ^ (uint32_t)__builtin_popcount(b),
		(a >> 8 & 0xff) << 8 | (b >> 8 & 0xff) | (b >> 24) << 16 | a >> 24 << 24,
		b << 7 | a >> 25,
		(uint32_t)((uint64_t)a * b >> 32) + (uint32_t)low24(a) * (uint32_t)low24(b),
		(uint32_t)((int64_t)(int32_t)a * (int32_t)b >> 32),
		(uint32_t)(wide / (b | 1)),
		(uint32_t)(wide % (a | 1)),
		(uint32_t)((int64_t)wide / ((int32_t)b | 1)),
		apply_to_bytes(a, b, sum),
		apply_to_bytes(a, b, distance),
		distance(a, b) + 5,
		a / (b | 1) + a % (b | 1),
		(uint32_t)((int32_t)a / ((int32_t)b | 1)),
		dot(a, b, 3),
		(uint32_t)((uint8_t)a * (int16_t)b),
	};

	for (int i = 0; i < 16; i++) {
		if (out[i] != want[i])
			fail_msg("integer function %d of 0x%x and 0x%x: 0x%x instead of 0x%x", i, a,
				 b, out[i], want[i]);
	}
}

TEST(integer_functions_are_exact)
{
	struct {
		uint32_t *x, *y, *out;
	} p = { gs_test_memory(COUNT * 4), gs_test_memory(COUNT * 4), gs_test_memory(COUNT * 64) };

	for (uint32_t i = 0; i < COUNT; i++) {
		p.x[i] = i * 2654435761u >> i % 30;
		p.y[i] = ~i * 40503u << i % 17;
	}
	run("integers", &p, sizeof(p));
	for (int i = 0; i < COUNT; i++)
		check_integers(p.out + i * 16, p.x[i], p.y[i]);
}

/* To 11 bits, for values that are normal halves. */
static float
to_half(float value)
{
	int exponent;
	double mantissa = frexp(value, &exponent);

	return (float)ldexp(rint(ldexp(mantissa, 11)), exponent - 11);
}

TEST(halves_round_as_they_should)
{
	struct {
		float *x, *y, *out;
	} p = { gs_test_memory(COUNT * 4), gs_test_memory(COUNT * 4), gs_test_memory(COUNT * 24) };

	for (int i = 0; i < COUNT; i++) {
		p.x[i] = to_half((float)sample(i, 1));
		p.y[i] = to_half((float)sample(i, 2));
	}
	run("halves", &p, sizeof(p));
	for (int i = 0; i < COUNT; i++) {
		const float *out = p.out + i * 6;
		float x = p.x[i];
		float y = p.y[i];

		check_close(0, x, y, out[0], to_half(x + y), 1e-6);
		check_close(1, x, y, out[1], to_half(x * y), 1e-6);
		check_close(2, x, y, out[2], 2 * to_half(fmaf(x, y, x)), 1e-6);
		check_close(3, x, y, out[3], x < y, 0);
		check_close(4, x, y, out[4], x, 1.0 / 256);
		check_close(5, x, y, out[5], rint(x) + fmax(x, y), 1e-6);
	}
}

TEST(tiles_of_a_block_reduce)
{
	struct {
		int *in, *out;
	} p = { gs_test_memory(256), gs_test_memory(1024) };

	for (int i = 0; i < 64; i++)
		p.in[i] = i * 37 % 64;
	gs_test_run(module, &(struct gs_test_launch){ .kernel = "reductions",
						      .blocks = 1,
						      .threads = 64,
						      .params = &p,
						      .params_size = sizeof(p) });
	for (int t = 0; t < 64; t++) {
		int total = 0;
		int most = 0;

		for (int i = t / 8 * 8; i < t / 8 * 8 + 8; i++)
			total += p.in[i];
		for (int i = t / 32 * 32; i < t / 32 * 32 + 32; i++)
			most = p.in[i] > most ? p.in[i] : most;
		assert_int_equal(p.out[t], total);
		assert_int_equal(p.out[t + 64], most);
		assert_int_equal(p.out[t + 128], p.in[t ^ 3] + (t < 8));
	}
}

UNIT_TEST_MAIN(load_module, unload_module)
