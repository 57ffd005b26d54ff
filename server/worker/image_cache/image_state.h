/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the variables of device code: whether it has state, and how much device memory it needs.
 *
 * Ownership: the caller owns the code, which is only read.
 * Threads: any; the functions keep no state. The bytes are untrusted; every offset is checked.
 * Errors: none; malformed code is reported as having state and the size GPD_VARIABLES_UNKNOWN.
 */
#ifndef GPD_IMAGE_STATE_H
#define GPD_IMAGE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size in bytes that stands for a size that cannot be determined; larger than any memory. */
#define GPD_VARIABLES_UNKNOWN ((uint64_t)1 << 48)

/* Variables of a piece of device code. */
struct gpd_variables {
	/* Total bytes of the variables in global memory; at most GPD_VARIABLES_UNKNOWN. */
	uint64_t size;
	/* A launch of its kernels, or a write from outside, may affect another launch: the code has
	 * variables in global or constant memory, or texture or surface references, or the scan
	 * could not determine it. */
	bool state;
};

/* Returns the next position at or after `at`, in the text from begin to end (exclusive; begin <= at
 * <= end), at which `word` is a token of its own, not part of a longer name or instruction; NULL:
 * there is none. */
const char *gpd_text_find_word(const char *begin, const char *at, const char *end,
			       const char *word);

/* Scans an ELF file or a PTX text of size bytes. Any other code is reported as having no variables
 * but having state. */
struct gpd_variables gpd_variables_from_code(const void *bytes, size_t size);

#endif /* GPD_IMAGE_STATE_H */
