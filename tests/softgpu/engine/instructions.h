/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of PTX instructions with functions that compute their expected results, in plain C and
 * independently of the engine.
 *
 * Operands and results are 64 bits wide. A letter names the type, and with it the significant bits
 * and the values to test:
 *   h 16 bits, w 32 bits, l 64 bits
 *   f float, g double, e half (in 16 bits), x two halves
 *   p predicate
 *
 * Threads: the tables are constant and the functions have no state.
 */
#ifndef GS_TEST_INSTRUCTIONS_H
#define GS_TEST_INSTRUCTIONS_H

#include <stddef.h>
#include <stdint.h>

/* Returns the expected result for up to four operands; unused ones are 0. */
typedef uint64_t want_func(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

/* An instruction and its expected results. */
struct instruction {
	const char *text; /* PTX, with %d for the result's register and %0 to %3 for those of the
			     operands */
	const char *operands; /* letter of the result, then one per operand */
	want_func *want;
	/* Maximum difference of a result, in units in the last place; 0: exact. */
	unsigned int ulps;
};

/* The tables and their lengths. */
extern const struct instruction integer_instructions[];
extern const size_t integer_instruction_count;
extern const struct instruction float_instructions[];
extern const size_t float_instruction_count;

#endif
