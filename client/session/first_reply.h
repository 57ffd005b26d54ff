/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchdog for the first reply on lane 0: ends the session if the daemon does not reply in time.
 *
 * Until the first message arrives, the client cannot know that the daemon has received the lane,
 * because a proxy between them may have kept the connection. A daemon that misses the lane ends the
 * session on the control connection; without any message, the session ends when a reply is overdue.
 * Threads: used by the receiver thread only.
 */
#ifndef GPC_FIRST_REPLY_H
#define GPC_FIRST_REPLY_H

#include "client/session/session_internal.h"

/* State of the watchdog. */
struct gpc_first_reply {
	uint64_t checked_ns; /* time of the last check */
	uint64_t waited_ns;  /* time for which a reply has been outstanding */
	char why[160];       /* explanation for GPC_FIRST_REPLY_LATE */
};

/* Result of a check: whether the session is to end, and why. */
enum gpc_first_reply_end {
	GPC_FIRST_REPLY_NONE,
	GPC_FIRST_REPLY_ENDED, /* reported on the control connection, or that is closed */
	GPC_FIRST_REPLY_LATE,
};

/* Starts the watchdog. */
void gpc_first_reply_init(struct gpc_first_reply *first);
/* Called periodically until the first message arrives. Returns whether, and how, the session is to
 * end. Releases the lock temporarily. */
enum gpc_first_reply_end gpc_first_reply_check_locked(struct gpc_session *session,
						      struct gpc_first_reply *first)
	GP_LOCKED(session->receiver.lock);

#endif /* GPC_FIRST_REPLY_H */
