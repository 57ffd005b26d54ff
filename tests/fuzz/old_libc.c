/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzing engine's C++ library takes from a newer C library than the rest needs. */
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
