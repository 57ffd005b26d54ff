/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of bytes as people read them: "4 GiB", "1.5 MiB", "12 bytes".  Any thread. */
#ifndef GPD_SIZE_TEXT_H
#define GPD_SIZE_TEXT_H

#include <stdint.h>

#define GPD_SIZE_TEXT_MAX 32

/* Returns text. */
char *gpd_size_format(uint64_t bytes, char text[GPD_SIZE_TEXT_MAX]);

#endif /* GPD_SIZE_TEXT_H */
