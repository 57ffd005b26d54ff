/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the process that help connections to seal and open bulk, where there are processors
 * for them: the connection's own thread then mostly sends or receives, and does itself what no
 * helper has begun.  A job belongs to the thread that begins it and lasts for one read or write.
 */
#ifndef GP_TLS_HELP_H
#define GP_TLS_HELP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GP_HELP_PIECES 16

struct gp_help {
	/* Before it begins: does a piece, for the helper or for the connection's own thread. */
	bool (*run)(struct gp_help *help, unsigned int piece, bool helper);

	struct gp_help *next;
	bool queued, shared;   /* with helpers, now and at all */
	pthread_mutex_t order; /* shows the program's thread sanitizer what the atomics order */
	atomic_bool helped;    /* a helper is at it */
	atomic_uint ready;     /* pieces that can be done */
	atomic_uint claimed;   /* that somebody does or has done */
	atomic_bool over;      /* no more get ready */
	atomic_uchar state[GP_HELP_PIECES];
};

enum gp_help_state {
	GP_HELP_OPEN,
	GP_HELP_DONE,
	GP_HELP_FAILED,
};

/* How many helpers there may be; -1, the default: as suits the machine.  Before the first job. */
void gp_help_limit(int count);
bool gp_help_is_there(void);

/* `ready` pieces can be done at once.  If there are helpers, see gp_help_is_there(). */
void gp_help_begin(struct gp_help *help, unsigned int ready);
void gp_help_more(struct gp_help *help, unsigned int ready);
/* The owner does one piece, if one is left. */
bool gp_help_oneself(struct gp_help *help);
/* Whether it is, well, by now. */
bool gp_help_is_done(struct gp_help *help, unsigned int piece);
/* Whether the piece is well done, which is waited for if a helper is at it. */
bool gp_help_wait(struct gp_help *help, unsigned int piece);
/* No helper touches it any more. */
void gp_help_end(struct gp_help *help);

#endif /* GP_TLS_HELP_H */
