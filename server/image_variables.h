/* SPDX-License-Identifier: Apache-2.0 */
/* How much device memory the variables of device code take.  Any thread; the bytes are believed in
 * nothing. */
#ifndef GPD_IMAGE_VARIABLES_H
#define GPD_IMAGE_VARIABLES_H

#include <stddef.h>
#include <stdint.h>

/* Not to be read off the text: more than there is anywhere. */
#define GPD_VARIABLES_UNKNOWN ((uint64_t)1 << 48)

/* Of an ELF or of PTX text: the sum of its variables in global memory, GPD_VARIABLES_UNKNOWN at
 * most; 0 for anything else. */
uint64_t gpd_variables_size(const void *bytes, size_t size);

#endif /* GPD_IMAGE_VARIABLES_H */
