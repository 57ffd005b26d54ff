/* SPDX-License-Identifier: Apache-2.0 */
/* Time and medians, for the benchmark programs. */
#ifndef GP_BENCH_H
#define GP_BENCH_H

#include <stdlib.h>
#include <time.h>

/* Returns the monotonic time in seconds. */
static inline double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Implements median(). */
static inline int
compare_numbers(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

/* Sorts the values, of which there is at least one, and returns their median. */
static inline double
median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	return values[count / 2];
}

#endif /* GP_BENCH_H */
