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

/*
 * The end of a session: its parts are closed phase by phase, those of a phase in the order in which
 * gpd_closing_parts has them.  What a phase may rely on stands at its name; what is new in a
 * session gets a line in that table.
 */
enum gpd_closing_phase {
	GPD_CLOSING_STOP,  /* nothing new is taken; the GPU and the responder are still at work */
	GPD_CLOSING_AWAIT, /* what the GPU has is done or cancelled; whoever waits for it is told */
	GPD_CLOSING_OBJECTS, /* no thread but this one knows the session; not if the GPU is lost */
	GPD_CLOSING_MEMORY,  /* no object is left; not if the GPU is lost */
	/* Nothing is left; if the GPU is lost, what others know of the session's arrays goes.
	 * Ledger, log and supervisor hear of the end. */
	GPD_CLOSING_REPORT,
};

struct gpd_closing_part {
	enum gpd_closing_phase phase;
	void (*close)(struct gpd_session *session);
};

extern const struct gpd_closing_part gpd_closing_parts[];
extern const size_t gpd_closing_part_count;

/* Executor: through all phases; frees the session. */
void gpd_session_close(struct gpd_session *session);

/* Of a session that has no threads, by whoever has removed it from the list: it ends with this
 * result.  Frees it. */
void gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason);

#endif /* GPD_SESSION_LIFE_H */
