/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instructions should give, written in plain C and apart from the engine's own arithmetic.
 * An operand or result is 64 bits; a letter says how many count and which values are tried:
 * h 16 bits, w 32, l 64, f float, g double, e half (bits in 16), x two halves, p predicate.
 */
#ifndef GS_TEST_INSTRUCTIONS_H
#define GS_TEST_INSTRUCTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t want_func(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

struct instruction {
	const char *text;     /* with %d for the result and %0 to %3 for operands */
	const char *operands; /* the result's letter and those of the operands */
	want_func *want;
	unsigned int ulps; /* by how many units in the last place a result may differ */
};

extern const struct instruction integer_instructions[];
extern const size_t integer_instruction_count;
extern const struct instruction float_instructions[];
extern const size_t float_instruction_count;

#endif
