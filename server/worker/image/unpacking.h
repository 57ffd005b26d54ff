/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate that compressed code of a session passes in the worker (struct gp_unpack_gate).  The
 * unpacked size counts as code of the session while it is in memory.  Of entries of more than 4 MiB
 * a worker unpacks two at a time, and of each tenant one.
 *
 * Ownership: the caller; the session outlives it.
 * Threads: the session's executor.
 */
#ifndef GPD_UNPACKING_H
#define GPD_UNPACKING_H

#include "image/fatbin.h"

struct gpd_session;

struct gpd_unpacking {
	struct gp_unpack_gate gate;
	struct gpd_session *session;
	struct gpd_unpacking *next; /* of those with the turn of their tenant; unpackings.lock */
	bool is_running;
};

void gpd_unpacking_init(struct gpd_unpacking *unpacking, struct gpd_session *session);

#endif /* GPD_UNPACKING_H */
