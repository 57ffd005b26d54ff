/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the variables of device code: whether it has state, and how much device memory it needs.
 *
 * Threads: any. The bytes are untrusted; every offset is checked.
 * Errors: none; malformed code is reported as having unknown size and state.
 */
#ifndef GPD_IMAGE_VARIABLES_H
#define GPD_IMAGE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of variables that cannot be determined: larger than any memory. */
#define GPD_VARIABLES_UNKNOWN ((uint64_t)1 << 48)

struct gpd_variables {
	uint64_t size; /* sum of the variables in global memory; at most GPD_VARIABLES_UNKNOWN */
	/* One launch of its kernels, or a write from outside, may affect another launch: the code
	 * has variables in global or constant memory, or texture or surface references, or the scan
	 * could not determine it. */
	bool state;
};

/* Returns the next place at or after `at` where the word is a token of its own, not part of a
 * longer name or instruction; NULL if there is none. */
const char *gpd_text_find_word(const char *begin, const char *at, const char *end,
			       const char *word);

/* Scans an ELF or PTX text. Any other code is reported as having no variables but having state. */
struct gpd_variables gpd_variables_from_code(const void *bytes, size_t size);

#endif /* GPD_IMAGE_VARIABLES_H */
