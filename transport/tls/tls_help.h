/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the process that help connections to seal and open bulk, where there are processors
 * for them: the connection's own thread then mostly sends or receives, and does itself what no
 * helper has begun.  A job belongs to the thread that begins it and lasts for one read or write.
 */
#ifndef GP_TLS_HELPERS_H
#define GP_TLS_HELPERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GP_TLS_JOB_PIECES 16

struct gp_tls_job {
	/* Before it begins: does a piece, for the helper or for the connection's own thread. */
	bool (*run)(struct gp_tls_job *help, unsigned int piece, bool helper);

	struct gp_tls_job *next;
	bool queued, shared;    /* with helpers, now and at all */
	pthread_mutex_t order;  /* shows the program's thread sanitizer what the atomics order */
	atomic_bool has_helper; /* a helper is at it */
	atomic_uint ready;      /* pieces that can be done */
	atomic_uint claimed;    /* that somebody does or has done */
	atomic_bool over;       /* no more get ready */
	atomic_uchar state[GP_TLS_JOB_PIECES];
};

enum gp_tls_piece_state {
	GP_TLS_PIECE_PENDING,
	GP_TLS_PIECE_DONE,
	GP_TLS_PIECE_FAILED,
};

/* How many helpers there may be; -1, the default: as suits the machine.  Before the first job. */
void gp_tls_helpers_set_max(int count);
bool gp_tls_helpers_exist(void);

/* `ready` pieces can be done at once.  If there are helpers, see gp_tls_helpers_exist(). */
void gp_tls_job_start(struct gp_tls_job *help, unsigned int ready);
void gp_tls_job_add_pieces(struct gp_tls_job *help, unsigned int ready);
/* The owner does one piece, if one is left. */
bool gp_tls_job_run_piece(struct gp_tls_job *help);
/* Whether it is, well, by now. */
bool gp_tls_job_is_piece_done(struct gp_tls_job *help, unsigned int piece);
/* Whether the piece is well done, which is waited for if a helper is at it. */
bool gp_tls_job_wait_piece(struct gp_tls_job *help, unsigned int piece);
/* No helper touches it any more. */
void gp_tls_job_stop(struct gp_tls_job *help);

#endif /* GP_TLS_HELPERS_H */
