/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchdog for the first reply on lane 0 (the connection that carries the calls): detects that the
 * daemon does not reply in time.
 *
 * Until the first message arrives, the client cannot know that the daemon has received the lane,
 * because a proxy between them may have held back the connection. A daemon that has not received
 * the lane ends the session on the control connection. If no message arrives there either, the
 * session is to end when a reply is overdue.
 * Ownership: struct gpc_first_reply is on the receiver thread's stack and needs no cleanup.
 * Threads: used by the receiver thread only.
 * Units: times in nanoseconds, of gp_now_ns().
 */
#ifndef GPC_FIRST_REPLY_H
#define GPC_FIRST_REPLY_H

#include "client/session/session_internal.h"

/* State of the watchdog. */
struct gpc_first_reply {
	uint64_t checked_ns; /* time of the last check */
	/* time for which replies with a limit have been outstanding without interruption, less the
	 * time for which the process was stopped */
	uint64_t waited_ns;
	char why[160]; /* reason, valid after GPC_FIRST_REPLY_LATE */
};

/* Result of a check: whether the session is to end, and why. */
enum gpc_first_reply_end {
	GPC_FIRST_REPLY_NONE,
	GPC_FIRST_REPLY_ENDED, /* the daemon ended it on the control connection, or that connection
				  failed */
	GPC_FIRST_REPLY_LATE,  /* a reply is overdue; the message is in `why` */
};

/* Initializes the state; time counts from now. */
void gpc_first_reply_init(struct gpc_first_reply *first);
/* Called about twice a second until the first message arrives. Returns whether, and why, the caller
 * is to end the session; does not end it itself. A reply is overdue after 2 times GPUPOOL_TIMEOUT
 * (10 times if a call in flight compiles code). There is no limit if GPUPOOL_TIMEOUT is 0, after a
 * call whose duration depends on the GPU, or while a message is being sent. Releases the lock while
 * it reads the control connection, which may take a second. */
enum gpc_first_reply_end gpc_first_reply_check_locked(struct gpc_session *session,
						      struct gpc_first_reply *first)
	GP_LOCKED(session->receiver.lock);

#endif /* GPC_FIRST_REPLY_H */
