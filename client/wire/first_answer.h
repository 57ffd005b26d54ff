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

struct gpc_first_reply {
	uint64_t checked_ns; /* when it looked last */
	uint64_t waited_ns;  /* so long was an answer owed */
	char why[160];       /* LATE: what is so */
};

enum gpc_first_reply_end {
	GPC_FIRST_REPLY_NONE,
	GPC_FIRST_REPLY_ENDED, /* the control connection says why the session is over, or is gone */
	GPC_FIRST_REPLY_LATE,
};

void gpc_first_reply_init(struct gpc_first_reply *first);
/* In each turn until something has come: whether, and how, the session is to end.  Without the lock
 * meanwhile. */
enum gpc_first_reply_end gpc_first_reply_check_locked(struct gpc_session *session,
						      struct gpc_first_reply *first)
	GP_LOCKED(session->receiver.lock);

#endif /* GPC_FIRST_ANSWER_H */
