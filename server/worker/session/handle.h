/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle table of a session: maps IDs chosen by the client to objects. gpd_handle_get() returns
 * NULL for an invalid ID, or an ID of another generation; an ID is never used as an address. Each
 * kind of object has its own ID space. Objects embed struct gpd_handle as their first member.
 *
 * Ownership: the table does not own the objects. The module of each kind frees them, at the latest
 * at the session's end; an object must be removed from the table before it is freed.
 * Threads: executor only.
 */
#ifndef GPD_HANDLE_H
#define GPD_HANDLE_H

#include "gpd_kinds.h"
#include "server/common/ledger/handle_memory.h"

#include <stdint.h>

struct gpd_handle {
	enum gpd_kind kind; /* kind of the object */
	uint32_t id;        /* chosen by the client */
};

/* Number of indices of each kind. A chunk of the table has GPD_HANDLE_CHUNK of them. */
#define GPD_HANDLE_INDEX_MAX (1u << 20)
#define GPD_HANDLE_CHUNK 1024u

/* The table, part of the session. Initialized to zeros; chunks are allocated as IDs are used. To
 * charge the session's memory, set memory.ledger and memory.entry (its ledger entry) before the
 * first use; left NULL, bytes are only counted and unlimited. */
struct gpd_handle_table {
	/* by kind and index / GPD_HANDLE_CHUNK; owned; NULL: not allocated yet */
	struct gpd_handle **chunks[GPD_KIND_COUNT][GPD_HANDLE_INDEX_MAX / GPD_HANDLE_CHUNK];
	/* counts the approximate host memory of the handles and their objects
	 * (ledger/handle_memory.h) */
	struct gpd_handle_memory memory;
};

/* Adds the handle under this ID, sets its members and charges the kind's memory. kind: at least 1,
 * less than GPD_KIND_COUNT. id: from the client; index in the low 20 bits, generation in the upper
 * 12; 0 is invalid. Returns 0; -EEXIST: the index is in use, by an ID of any generation; -EINVAL:
 * id is 0; -ENOMEM: out of memory, or the session's limit is reached. On failure the handle is
 * unchanged. */
int gpd_handle_add(struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id,
		   struct gpd_handle *handle);
/* Returns the object that embeds the handle, borrowed from its owner; NULL: no object has this
 * ID. */
void *gpd_handle_get(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id);
/* Removes the handle and uncharges its object's memory. Does nothing if the handle is not in the
 * table, but kind and id must be initialized. Does not free the object. */
void gpd_handle_remove(struct gpd_handle_table *table, struct gpd_handle *handle);
/* Iterates over the objects of a kind: returns the next object, borrowed, or NULL after the last
 * one. *at is the position, 0 before the first call. Between two calls handles may be removed,
 * including the returned one, but not added. */
void *gpd_handle_next(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t *at);
/* Frees the chunks and uncharges everything. Does not access objects that are still in the table.
 * The table is then all zeros; for reuse, set memory.ledger and memory.entry again. */
void gpd_handle_fini(struct gpd_handle_table *table);

#endif /* GPD_HANDLE_H */
