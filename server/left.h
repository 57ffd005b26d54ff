/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of clients that are gone, as the supervisor sees it: in which workers it goes on, whose
 * it is, and which worker ends when there are too many.
 *
 * What a worker says of it (GPD_CHANNEL_BUSY) is counted in its gpd_child, by tenants; whose
 * sessions there are the ledger says.  Main thread only.
 */
#ifndef GPD_LEFT_H
#define GPD_LEFT_H

#include "protocol/status.h"
#include "server/channel.h"
#include "server/child.h"
#include "server/ledger.h"

#include <stdbool.h>
#include <stddef.h>

/* Such work of a session goes on for longer than usual, or has ended. */
void gpd_left_note(struct gpd_child *child, struct gpd_ledger *ledger,
		   const struct gpd_channel_message *message);

/* How many of the list others serve for because of such work that still goes on. */
int gpd_left_count(const struct gpd_child *list);

/*
 * Of those the one that should end: the oldest in which nobody has a session but tenants that left
 * work there, and if there is none, the oldest.  NULL: there are none.
 */
struct gpd_child *gpd_left_choose(struct gpd_child *list, const struct gpd_ledger *ledger);

/* The one that may serve again, as its work has ended: the oldest.  NULL: there is none. */
struct gpd_child *gpd_left_find_idle(struct gpd_child *list);

/* The names of the tenants whose work it is, with commas between; some of them if there is not
 * room for all. */
void gpd_left_owners(const struct gpd_child *child, const struct gpd_ledger *ledger, char *text,
		     size_t size);

#endif /* GPD_LEFT_H */
