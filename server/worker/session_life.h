/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a session: opened with its window and its line in the ledger, before there is a lane;
 * lane 0 starts its threads, which end when the lane does and take the session with them.
 */
#ifndef GPD_SESSION_LIFE_H
#define GPD_SESSION_LIFE_H

#include <cuda.h>
#include <stdint.h>

struct gp_conn;
struct gpd_channel_open;
struct gpd_range;
struct gpd_session;

/* Main thread.  NULL: no memory. */
struct gpd_session *gpd_session_open(uint64_t id, const struct gpd_channel_open *open,
				     const struct gpd_range *window);
/* Takes the connection over.  0; -ENOMEM, and the session is to be discarded. */
int gpd_session_start(struct gpd_session *session, struct gp_conn *conn);

/*
 * Gives the session as many multiprocessors of each device as its line in the ledger wants, within
 * what its tenant has; 0: all of that.  How many it has from now on is written into the line; 0:
 * all of the device.  Its streams move when it next gives one work.  Any thread that keeps the
 * session from being freed; not two at a time for one session.
 */
void gpd_session_follow_ledger(struct gpd_session *session);

/* Executor: the end of the session, part by part; frees it. */
void gpd_session_close(struct gpd_session *session);

/* Of a session that has no threads, by whoever has removed it from the list: it ends with this
 * result.  Frees it. */
void gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason);

#endif /* GPD_SESSION_LIFE_H */
