/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols of a newer C library that the fuzzing engine's C++ library needs. */
#include <stdint.h>
#include <sys/random.h>

uint32_t arc4random(void);

uint32_t
arc4random(void)
{
	uint32_t number = 0;

	(void)!getrandom(&number, sizeof(number), 0);
	return number;
}
