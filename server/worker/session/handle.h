/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's handles: names chosen by the client -> objects.  A wrong name is an error, never an
 * address.  Objects embed struct gpd_handle.  Only the session's executor uses the table.
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

/* In chunks, made when they are needed: what a session costs is what it names. */
struct gpd_handle_table {
	struct gpd_handle **chunks[GPD_KIND_COUNT][GPD_HANDLE_INDEX_MAX / GPD_HANDLE_CHUNK];
	struct gpd_name_memory memory; /* what they and their objects take, roughly */
};

/* id: low 20 bits index, upper 12 generation; 0 is no name. 0; -EEXIST: in use; -EINVAL; -ENOMEM,
 * also if the session may have no more. */
int gpd_handle_add(struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id,
		   struct gpd_handle *handle);
/* The object that embeds the handle, or NULL. */
void *gpd_handle_get(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t id);
void gpd_handle_remove(struct gpd_handle_table *table, struct gpd_handle *handle);
/* One object of the kind after the other: *at is 0 at first, NULL says that there is no other.
 * Between two calls handles may be removed, and none added. */
void *gpd_handle_next(const struct gpd_handle_table *table, enum gpd_kind kind, uint32_t *at);
void gpd_handle_fini(struct gpd_handle_table *table);

#endif /* GPD_HANDLE_H */
