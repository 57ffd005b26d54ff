/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of PTX instructions with their expected results, computed in plain C independently of the
 * engine.
 *
 * Operands and results are 64 bits wide. A letter names the type, and with it the significant bits
 * and the values to try:
 *   h 16 bits, w 32 bits, l 64 bits
 *   f float, g double, e half (in 16 bits), x two halves
 *   p predicate
 */
#ifndef GS_TEST_INSTRUCTIONS_H
#define GS_TEST_INSTRUCTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t want_func(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

struct instruction {
	const char *text;     /* with %d for the result and %0 to %3 for the operands */
	const char *operands; /* letters of the result and of the operands */
	want_func *want;
	unsigned int ulps; /* allowed difference of a result, in units in the last place */
};

extern const struct instruction integer_instructions[];
extern const size_t integer_instruction_count;
extern const struct instruction float_instructions[];
extern const size_t float_instruction_count;

#endif
