/* SPDX-License-Identifier: Apache-2.0 */
/*
 * litmus [ROUNDS [SEED [SHAPE...]]]: what memory that the program and kernels use promises.
 *
 * Each shape is one promise, checked in ROUNDS rounds for each kind of memory that it may use, with
 * random delays in the program and in the kernel.
 */
#include "app.h"

#include <random>
#include <sched.h>
#include <string>

/* Memory that the program and kernels use, and its address for kernels. */
struct block {
	unsigned int *host, *device;
	bool registered;
};

static const size_t block_size = 64 << 10;

static block
block_create(bool registered)
{
	block made = { nullptr, nullptr, registered };

	if (registered) {
		made.host = static_cast<unsigned int *>(aligned_alloc(4096, block_size));
		REQUIRE(made.host);
		CHECK(cudaHostRegister(made.host, block_size, cudaHostRegisterMapped));
	} else {
		CHECK(cudaHostAlloc(&made.host, block_size, cudaHostAllocMapped));
	}
	CHECK(cudaHostGetDevicePointer(&made.device, made.host, 0));
	memset(made.host, 0, block_size);
	return made;
}

static void
block_destroy(const block &gone)
{
	if (!gone.registered) {
		CHECK(cudaFreeHost(gone.host));
		return;
	}
	CHECK(cudaHostUnregister(gone.host));
	free(gone.host);
}

/* What a shape is given. */
struct arena {
	block flag, data;
	cudaStream_t stream;
	unsigned int rounds;
	std::mt19937 random;

	unsigned int below(unsigned int end)
	{
		return static_cast<unsigned int>(random()) % end;
	}

	/* The program's delay: none, a turn for another thread, or some microseconds. */
	void pause()
	{
		unsigned int kind = below(4);

		if (kind == 1)
			sched_yield();
		for (volatile unsigned int i = 0, end = kind > 1 ? below(3000) : 0; i < end;)
			i = i + 1;
	}

	/* The kernel's delay in nanoseconds. */
	unsigned int delay()
	{
		return below(3) ? below(20000) : 0;
	}

	const char *name(const block &of) const
	{
		return of.registered ? "registered" : "pinned";
	}
};

[[noreturn]] static void
litmus_fail(const arena &in, const char *shape, unsigned int round, const char *what)
{
	printf("%s, flag %s, data %s, round %u: %s\n", shape, in.name(in.flag), in.name(in.data),
	       round, what);
	fflush(stdout);
	_Exit(1);
}

/* Two writers: different bytes of the same words, none of which is lost. */

static __global__ void
bytes_write(volatile unsigned char *bytes, unsigned int count, unsigned int step,
	    unsigned int width, unsigned char value, unsigned int delay)
{
	app_stay(delay);
	for (unsigned int at = 0; at < count; at += step) {
		for (unsigned int i = 0; i < width; i++)
			bytes[at + i] = value;
	}
}

static void
two_writers(arena &in)
{
	unsigned char *bytes = reinterpret_cast<unsigned char *>(in.data.host);

	for (unsigned int round = 1; round <= in.rounds; round++) {
		/* Of each 2, 4 or 8 bytes the kernel has the first ones. */
		unsigned int step = 2u << in.below(3), width = 1 + in.below(step - 1);
		unsigned int count = 8 + 8 * in.below(in.below(2) ? 8 : 512);
		unsigned char own = static_cast<unsigned char>(round);
		unsigned char other = static_cast<unsigned char>(round * 7 + 1);

		bytes_write<<<1, 1, 0, in.stream>>>(
			reinterpret_cast<unsigned char *>(in.data.device), count, step, width,
			other, in.delay());
		in.pause();
		for (unsigned int at = 0; at < count; at++) {
			if (at % step >= width)
				const_cast<volatile unsigned char *>(bytes)[at] = own;
		}
		in.pause();
		CHECK(cudaStreamSynchronize(in.stream));
		for (unsigned int at = 0; at < count; at++) {
			if (bytes[at] != (at % step >= width ? own : other))
				litmus_fail(in, "two writers", round,
					    at % step >= width ? "a byte of the program is lost"
							       : "a byte of the kernel is lost");
		}
	}
}

/* Fills: synchronous ones of the program's memory are seen when they return. */

static void
fills_in_order(arena &in)
{
	unsigned int *words = in.data.host;

	for (unsigned int round = 1; round <= in.rounds; round++) {
		unsigned int value = (round & 255) * 0x01010101u, rows = 1 + in.below(8);
		unsigned int count = 16 * rows * (1 + in.below(in.below(2) ? 4 : 100));

		for (unsigned int i = 0; i < count; i++)
			words[i] = ~value;
		in.pause();
		switch (in.below(3)) {
		case 0:
			CHECK(cudaMemset(in.data.device, static_cast<int>(round), count * 4));
			break;
		case 1:
			CHECK(cudaMemset2D(in.data.device, count / rows * 4,
					   static_cast<int>(round), count / rows * 4, rows));
			break;
		default:
			CHECK(cudaMemsetAsync(in.data.device, static_cast<int>(round), count * 4,
					      in.stream));
			in.pause();
			CHECK(cudaStreamSynchronize(in.stream));
		}
		in.pause();
		for (unsigned int i = 0; i < count; i++) {
			if (words[i] != value)
				litmus_fail(in, "fill", round, "a word is old");
		}
	}
}

/* A shape, and the kinds of memory that it uses. */
static const struct {
	const char *name;
	void (*run)(arena &in);
	bool has_flag;
} shapes[] = {
	{ "two-writers", two_writers, false },
	{ "fill", fills_in_order, false },
};

static bool
is_wanted(const char *name, int argc, char **argv)
{
	bool wanted = argc <= 3;

	for (int i = 3; i < argc; i++)
		wanted |= std::string(argv[i]) == name;
	return wanted;
}

int
main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? static_cast<unsigned int>(atoi(argv[1])) : 20;
	unsigned int seed = argc > 2 ? static_cast<unsigned int>(atoi(argv[2])) : 1;

	for (const auto &shape : shapes) {
		if (!is_wanted(shape.name, argc, argv))
			continue;
		for (int kinds = 0; kinds < (shape.has_flag ? 4 : 2); kinds++) {
			arena in = { block_create(kinds & 2), block_create(kinds & 1), nullptr,
				     rounds, std::mt19937(seed) };

			CHECK(cudaStreamCreateWithFlags(&in.stream, cudaStreamNonBlocking));
			shape.run(in);
			CHECK(cudaStreamDestroy(in.stream));
			block_destroy(in.flag);
			block_destroy(in.data);
		}
	}
	return app_ok("litmus");
}
