/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle table of a session: maps names chosen by the client to objects. An invalid name is an
 * error and is never used as an address. Objects embed struct gpd_handle as their first member.
 *
 * Ownership: the table does not free objects; the module of each kind does, at the latest at the
 * session's end.
 * Threads: executor only.
 */
#ifndef GPD_HANDLE_H
#define GPD_HANDLE_H

#include "gpd_kinds.h"
#include "server/common/ledger/name_memory.h"

#include <stdint.h>

struct gpd_handle {
	enum gpd_kind kind;
	uint32_t id;
};

#define GPD_HANDLE_INDEX_MAX (1u << 20)
#define GPD_HANDLE_CHUNK 1024u

/* The table is allocated in chunks as names are used. */
struct gpd_handle_table {
	struct gpd_handle **chunks[GPD_KIND_COUNT][GPD_HANDLE_INDEX_MAX / GPD_HANDLE_CHUNK];
	struct gpd_name_memory memory; /* approximate memory of the names and their objects */
};

/* id: index in the low 20 bits, generation in the upper 12; 0 is not a valid name. Returns 0;
 * -EEXIST: the index is in use; -EINVAL; -ENOMEM, also if the session's limit is reached. */
int gpd_handle_add(struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id,
		   struct gpd_handle *handle);
/* Returns the object that embeds the handle, or NULL. */
void *gpd_handle_get(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id);
/* Removes the handle if it is in the table. */
void gpd_handle_remove(struct gpd_handle_table *table, struct gpd_handle *handle);
/* Iterates over the objects of a kind: *at is 0 at first; NULL: no more objects. Handles may be
 * removed between two calls, but not added. */
void *gpd_handle_next(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t *at);
/* Frees the table; the objects must have been freed before. */
void gpd_handle_fini(struct gpd_handle_table *table);

#endif /* GPD_HANDLE_H */
