/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPC_CONTAINER_H
#define GPC_CONTAINER_H

#include <stddef.h>

/* Returns the object, of the given type, that contains *pointer as its `member`. The pointer must
 * not be NULL. */
#define GPC_CONTAINER(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif /* GPC_CONTAINER_H */
