/* SPDX-License-Identifier: Apache-2.0 */
/* Growing arrays. */
#ifndef GPC_LIST_H
#define GPC_LIST_H

#include <stddef.h>
#include <stdlib.h>

/*
 * Returns the list of `count` elements with room for one more: the list itself, or where realloc()
 * has moved it. *room_p is the number of elements for which it has room, and is updated. The empty
 * list is NULL, with room 0.
 * Ownership: as realloc(): the caller stores the result, and frees it.
 * Errors: NULL if memory is exhausted; the list is then unchanged.
 * Units: element_size is in bytes.
 */
static inline void *
gpc_list_grow(void *list, size_t count, size_t *room_p, size_t element_size)
{
	size_t room = *room_p ? 2 * *room_p : 4;

	if (count < *room_p)
		return list;
	list = reallocarray(list, room, element_size);
	if (list)
		*room_p = room;
	return list;
}

#endif /* GPC_LIST_H */
