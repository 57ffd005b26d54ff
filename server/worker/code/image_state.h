/* SPDX-License-Identifier: Apache-2.0 */
/* What variables device code has, and how much device memory they take.  Any thread; the bytes are
 * believed in nothing. */
#ifndef GPD_IMAGE_VARIABLES_H
#define GPD_IMAGE_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not to be read off the text: more than there is anywhere. */
#define GPD_VARIABLES_UNKNOWN ((uint64_t)1 << 48)

struct gpd_variables {
	uint64_t size; /* the sum of those in global memory; GPD_VARIABLES_UNKNOWN at most */
	/* What one launch of its kernels leaves behind, or what is written to it from outside, may
	 * matter to another: it has variables, in global or in constant memory, or references to
	 * textures or surfaces, or nobody can tell. */
	bool state;
};

/* The next place from `at` on where the word stands as such, outside of names and instructions. */
const char *gpd_text_find_word(const char *begin, const char *at, const char *end,
			       const char *word);

/* Of an ELF or of PTX text; anything else has no variables, and state. */
struct gpd_variables gpd_variables_from_code(const void *bytes, size_t size);

#endif /* GPD_IMAGE_VARIABLES_H */
