/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool of helper threads that encrypt and decrypt bulk in parallel, on machines with enough
 * processors. The connection's own thread then mainly sends or receives, and processes pieces that
 * no helper has started.
 *
 * Ownership: a job belongs to the thread that starts it and lasts for one read or write.
 * Threads: any; a process has one pool.
 */
#ifndef GP_TLS_HELPERS_H
#define GP_TLS_HELPERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define GP_TLS_JOB_PIECES 16

struct gp_tls_job {
	/* Set before the job starts: processes a piece, called by a helper or by the connection's
	 * thread. Returns whether it succeeded. */
	bool (*run)(struct gp_tls_job *help, unsigned int piece, bool helper);

	struct gp_tls_job *next;
	bool queued, shared;    /* queued: in the helpers' queue; shared: was ever queued */
	pthread_mutex_t order;  /* makes the ordering by atomics visible to a thread sanitizer */
	atomic_bool has_helper; /* a helper is working on it */
	atomic_uint ready;      /* number of pieces that can be processed */
	atomic_uint claimed;    /* number of pieces that were started */
	atomic_bool over;       /* no more pieces are added */
	atomic_uchar state[GP_TLS_JOB_PIECES];
};

enum gp_tls_piece_state {
	GP_TLS_PIECE_PENDING,
	GP_TLS_PIECE_DONE,
	GP_TLS_PIECE_FAILED,
};

/* Sets the maximum number of helpers; -1, the default: depends on the machine. Must be called
 * before the first job. */
void gp_tls_helpers_set_max(int count);
/* Whether there are helpers. */
bool gp_tls_helpers_exist(void);

/* Starts a job of which `ready` pieces can be processed at once; requires gp_tls_helpers_exist().
 * gp_tls_job_add_pieces() raises the number. */
void gp_tls_job_start(struct gp_tls_job *help, unsigned int ready);
void gp_tls_job_add_pieces(struct gp_tls_job *help, unsigned int ready);
/* Processes a piece in the owner's thread, if one is left. Returns whether there was one. */
bool gp_tls_job_run_piece(struct gp_tls_job *help);
/* Whether the piece has been processed successfully. */
bool gp_tls_job_is_piece_done(struct gp_tls_job *help, unsigned int piece);
/* Waits for a piece that a helper is processing. Returns whether the piece has succeeded. */
bool gp_tls_job_wait_piece(struct gp_tls_job *help, unsigned int piece);
/* Ends a job: afterwards no helper accesses it. */
void gp_tls_job_stop(struct gp_tls_job *help);

#endif /* GP_TLS_HELPERS_H */
