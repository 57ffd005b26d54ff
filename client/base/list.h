/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays. */
#ifndef GPC_LIST_H
#define GPC_LIST_H

#include <stddef.h>
#include <stdlib.h>

/*
 * Returns the list of `count` elements with room for one more: the list itself, or where realloc()
 * has moved it. *capacity_p is the number of elements for which it has room, and is updated. The
 * empty list is NULL, with capacity 0.
 * Ownership: as realloc(): the caller stores the result, and frees it.
 * Errors: NULL if memory is exhausted; the list is then unchanged.
 * Units: element_size is in bytes.
 */
static inline void *
gpc_list_grow(void *list, size_t count, size_t *capacity_p, size_t element_size)
{
	size_t capacity = *capacity_p ? 2 * *capacity_p : 4;

	if (count < *capacity_p)
		return list;
	list = reallocarray(list, capacity, element_size);
	if (list)
		*capacity_p = capacity;
	return list;
}

#endif /* GPC_LIST_H */
