/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for programs that measure calls of the CUDA driver or runtime. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <chrono>
#include <cstdio>
#include <cstdlib>

/* Calls a CUDA function. Exits with status 1 and a message if it fails. */
#define CHECK(call) check((int)(call), #call)

/* Implements CHECK(). */
static inline void
check(int error, const char *call)
{
	if (!error)
		return;
	fprintf(stderr, "%s: error %d\n", call, error);
	exit(1);
}

/* Returns the monotonic time in microseconds. */
static inline double
now_us()
{
	using namespace std::chrono;

	return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

#endif /* BENCH_MEASURE_H */
