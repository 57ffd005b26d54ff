/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for sample programs (app.h) that use the driver API only. A failed check prints its line
 * and exits with status 1. */
#ifndef DRIVER_APP_H
#define DRIVER_APP_H

#include <cstdio>
#include <cstdlib>
#include <cuda.h>

/* Call a driver function that must succeed, or (EXPECT) return the error `expected`; or require
 * a condition. Otherwise they end the program. */
#define CHECK(call) check(CUDA_SUCCESS, call, #call, __LINE__)
#define EXPECT(expected, call) check(expected, call, #call, __LINE__)
#define REQUIRE(condition) require(condition, #condition, __LINE__)

/* Implements CHECK() and EXPECT(). */
static inline void
check(CUresult expected, CUresult result, const char *call, int line)
{
	const char *name = "unknown";

	if (result == expected)
		return;
	(void)cuGetErrorName(result, &name);
	printf("line %d: %s: %s (%d), expected %d\n", line, call, name, (int)result, (int)expected);
	exit(1);
}

/* Implements REQUIRE(). */
static inline void
require(bool condition, const char *what, int line)
{
	if (condition)
		return;
	printf("line %d: is not so: %s\n", line, what);
	exit(1);
}

#endif /* DRIVER_APP_H */
