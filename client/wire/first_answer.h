/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait for the first word of lane 0.  Until then nobody knows that the daemon has the lane:
 * whoever passes connections on may have kept it.  A daemon that misses it ends the session on the
 * control connection; where nobody says anything, the session ends when an answer is owed for too
 * long.  The receiver thread's.
 */
#ifndef GPC_FIRST_ANSWER_H
#define GPC_FIRST_ANSWER_H

#include "client/wire/session_inside.h"

struct gpc_first_answer {
	uint64_t looked_ns; /* when it looked last */
	uint64_t waited_ns; /* so long was an answer owed */
	char why[160];      /* LATE: what is so */
};

enum gpc_first_answer_end {
	GPC_FIRST_ANSWER_NONE,
	GPC_FIRST_ANSWER_TOLD, /* the control connection says why the session is over, or is gone */
	GPC_FIRST_ANSWER_LATE,
};

void gpc_first_answer_begin(struct gpc_first_answer *first);
/* In each turn until something has come: whether, and how, the session is to end.  Without the lock
 * meanwhile. */
enum gpc_first_answer_end gpc_first_answer_look_locked(struct gpc_session *session,
						       struct gpc_first_answer *first)
	GP_LOCKED(session->receiver.lock);

#endif /* GPC_FIRST_ANSWER_H */
