/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of pointers that other calls heed.  Any thread may call. */
#ifndef GPC_POINTER_H
#define GPC_POINTER_H

#include <stdbool.h>
#include <stdint.h>

/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: copies and fills of this memory that are not asynchronous by
 * name return when they are done.  So do those of memory that other processes have, too. */
bool gpc_pointer_is_synchronous(uint64_t address);

#endif /* GPC_POINTER_H */
