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

/* Of an ELF or of PTX text: the sum of its variables in global memory, GPD_VARIABLES_UNKNOWN at
 * most; 0 for anything else. */
uint64_t gpd_variables_size(const void *bytes, size_t size);

/* Whether what one launch of its kernels leaves behind, or what is written to it from outside, may
 * matter to another: it has variables, in global or in constant memory, or references to textures
 * or surfaces, or it is none of both. */
bool gpd_variables_keep_state(const void *bytes, size_t size);

#endif /* GPD_IMAGE_VARIABLES_H */
