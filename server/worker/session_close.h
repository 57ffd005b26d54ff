/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a session: its parts are closed phase by phase, those of a phase in the order in which
 * gpd_closing_parts has them.  What a phase may rely on stands at its name; what is new in a
 * session gets a line in that table.
 */
#ifndef GPD_SESSION_CLOSE_H
#define GPD_SESSION_CLOSE_H

#include <cuda.h>
#include <stddef.h>

struct gpd_session;

enum gpd_closing_phase {
	GPD_CLOSING_STOP,  /* nothing new is taken; the GPU and the responder are still at work */
	GPD_CLOSING_AWAIT, /* what the GPU has is done or cancelled; whoever waits for it is told */
	GPD_CLOSING_OBJECTS, /* no thread but this one knows the session; not if the GPU is lost */
	GPD_CLOSING_MEMORY,  /* no object is left; not if the GPU is lost */
	GPD_CLOSING_TELL, /* nothing is left: the ledger, the log and the supervisor hear of it */
};

struct gpd_closing_part {
	enum gpd_closing_phase phase;
	void (*close)(struct gpd_session *session);
};

extern const struct gpd_closing_part gpd_closing_parts[];
extern const size_t gpd_closing_part_count;

/* Executor: through all phases; frees the session. */
void gpd_session_close(struct gpd_session *session);

/* Main thread, of a session that has no threads: it ends with this result.  Frees it. */
void gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason);

#endif /* GPD_SESSION_CLOSE_H */
