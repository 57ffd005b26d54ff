/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of clients that are gone, as the supervisor sees it: in which workers it goes on, whose
 * it is, which worker ends when there are too many, and who gets no session before that.
 *
 * What a worker says of it (GPD_CHANNEL_BUSY) is counted in its gpd_child, by tenants; whose
 * sessions there are the ledger says.  Main thread only.
 */
#ifndef GPD_ORPHANS_H
#define GPD_ORPHANS_H

#include "protocol/status.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many others may serve for.  A context takes device memory that counts for nobody, so whoever
 * leaves such work behind again and again must not get any number of them. */
#define GPD_ORPHANS_WORKERS_MAX 4

/* Such work of a session goes on for longer than usual, or has ended. */
void gpd_orphans_note(struct gpd_child *child, struct gpd_ledger *ledger,
		      const struct gpd_channel_message *message);

/* How many of the list others serve for because of such work that still goes on. */
int gpd_orphans_count(const struct gpd_child *list);

/*
 * Of those the one that should end: the oldest in which nobody has a session but tenants that left
 * work there, and if there is none, the oldest.  NULL: there are none, or one tenant has left work
 * in each, next to others: who would pay for it, and it gets no session anyway (below), so there
 * will not be more of them by what it does.
 */
struct gpd_child *gpd_orphans_choose(struct gpd_child *list, const struct gpd_ledger *ledger);

/*
 * Whether a tenant gets no session in a worker that it shares with others: its work goes on in so
 * many of them already, and in each one other tenants have sessions, who would pay for one more.
 * Where it would be its own sessions that end, it gets one.
 */
bool gpd_orphans_shuts_out(struct gpd_child *list, const struct gpd_ledger *ledger,
			   uint32_t tenant);

/* The one that may serve again, as its work has ended: the oldest.  NULL: there is none. */
struct gpd_child *gpd_orphans_find_idle(struct gpd_child *list);

/* The names of the tenants whose work it is, with commas between; some of them if there is not
 * room for all. */
void gpd_orphans_owners(const struct gpd_child *child, const struct gpd_ledger *ledger, char *text,
			size_t size);

#endif /* GPD_ORPHANS_H */
