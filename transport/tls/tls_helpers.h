/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pool of helper threads that encrypt and decrypt bulk in parallel, on machines with enough
 * processors. A job is the processing of a part of a bulk, divided into at most GP_TLS_JOB_PIECES
 * pieces. The connection's own thread mainly sends or receives, and processes pieces that no helper
 * has started. Pieces are started in order.
 *
 * Life cycle: the owner sets `run` and calls gp_tls_job_start(); while it sends or receives,
 * add_pieces(), run_piece() and wait_piece(); and at the end gp_tls_job_stop().
 *
 * Ownership: a job is provided by the connection's thread that starts it (its owner). It must stay
 * valid from gp_tls_job_start() until gp_tls_job_stop() returns.
 * Threads: a process has one pool. The gp_tls_job_ functions are called by the job's owner; `run`
 * also by helpers. At most one helper works on a job, at the same time as the owner but on other
 * pieces, so `run` needs two sets of state. A job may get no helper: the owner must process the
 * pieces itself then.
 * Errors: none; a failed piece is reported as false.
 */
#ifndef GP_TLS_HELPERS_H
#define GP_TLS_HELPERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Maximum number of pieces of a job. */
#define GP_TLS_JOB_PIECES 16

/* A job. The owner sets `run` and may read `claimed`; the other members are internal. */
struct gp_tls_job {
	/* Processes a piece. Set before the job starts; called by a helper (helper true) or by the
	 * owner. Returns whether the piece was processed successfully. */
	bool (*run)(struct gp_tls_job *job, unsigned int piece, bool helper);

	/* next job in the helpers' queue */
	struct gp_tls_job *next;
	/* queued: in the helpers' queue, guarded by the queue's lock; shared: was ever queued */
	bool queued, shared;
	pthread_mutex_t order;  /* makes the ordering by atomics visible to a thread sanitizer */
	atomic_bool has_helper; /* a helper is working on the job */
	atomic_uint ready;      /* number of pieces that can be processed */
	/* Number of pieces that were started: those with a lower number. Only these may be passed
	 * to gp_tls_job_wait_piece(). */
	atomic_uint claimed;
	atomic_bool over; /* no more pieces are added */
	/* enum gp_tls_piece_state of each piece */
	atomic_uchar state[GP_TLS_JOB_PIECES];
};

enum gp_tls_piece_state {
	GP_TLS_PIECE_PENDING,
	GP_TLS_PIECE_DONE,
	GP_TLS_PIECE_FAILED,
};

/* Sets the number of helpers; -1, the default: a quarter of the processors, at most 8, and none
 * with fewer than 8 processors; 0: none. Has an effect only before the first call of
 * gp_tls_helpers_exist(). */
void gp_tls_helpers_set_max(int count);
/* Returns whether there are helpers; the first call starts them. */
bool gp_tls_helpers_exist(void);

/* Starts a job of which the first `ready` pieces (at most GP_TLS_JOB_PIECES) can be processed at
 * once; requires that gp_tls_helpers_exist() is true. Must be followed by gp_tls_job_stop(). */
void gp_tls_job_start(struct gp_tls_job *job, unsigned int ready);
/* Sets the number of pieces that can be processed to `ready`, from the earlier number to
 * GP_TLS_JOB_PIECES. */
void gp_tls_job_add_pieces(struct gp_tls_job *job, unsigned int ready);
/* Processes the next ready piece in the owner's thread. Returns whether there was one. */
bool gp_tls_job_run_piece(struct gp_tls_job *job);
/* Returns whether the piece has been processed successfully; false also after a failure, and if it
 * was not started. Does not wait. */
bool gp_tls_job_is_piece_done(struct gp_tls_job *job, unsigned int piece);
/* Waits, polling, until a piece below `claimed` has been processed; never returns for another one.
 * Returns whether it has succeeded. */
bool gp_tls_job_wait_piece(struct gp_tls_job *job, unsigned int piece);
/* Ends a job: removes it from the queue and waits, polling, until the helper that works on it, if
 * any, has processed the remaining ready pieces. Afterwards no helper accesses the job. */
void gp_tls_job_stop(struct gp_tls_job *job);

#endif /* GP_TLS_HELPERS_H */
