/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of one session of which the daemon has a copy, as the files mirror*.c share them:
 * mirror.c has the list and sends, mirror_fetch.c fetches, mirror_thread.c does both again and
 * again.
 *
 * A mirror is kept like its session.  Its locks say who may do what.
 */
#ifndef GPC_MIRROR_STATE_H
#define GPC_MIRROR_STATE_H

#include "base/lock.h"
#include "client/host/host_names.h"
#include "client/host/listed_copy.h"
#include "client/wire/call.h"
#include "client/wire/session.h"
#include "protocol/host_picture.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_sent;

struct gpc_mirror_block {
	struct gpc_mirror_block *prev, *next;
	uint8_t *host, *shadow, *marks;
	uint64_t address;
	size_t size;
	uint64_t writes; /* the record with the last of what it was at first */
};

/* When the daemon looks. */
enum gpc_mirror_when {
	GPC_MIRROR_NOW,
	GPC_MIRROR_BEHIND,  /* work */
	GPC_MIRROR_CHANGED, /* when something is there */
};

struct gpc_mirror_fetch {
	struct gpc_mirror_fetch *prev, *next;
	struct gpc_request request;
	struct gpc_mirror *mirror;
	uint64_t writes; /* records with changes that the daemon has stored before its answer */
	uint64_t begun_ns;
	uint64_t asked, done; /* bytes of its ranges, and of those that the answer holds for */
	uint64_t revision;    /* of the list of blocks */
	enum gpc_mirror_when when;
	bool failed;
	struct gpc_mirror_block *last; /* that something was stored in */
};

/* How far what goes one way has got: all at once, or long runs before the rest. */
struct gpc_mirror_way {
	uint64_t at, from, end; /* bytes of all blocks, one after the other */
	uint64_t revision;
	enum gp_picture_part part;
	int tries;
};

/* The blocks of one session; kept like the session itself. */
struct gpc_mirror {
	struct gpc_session *session;
	struct gpc_mirror *next;
	struct gpc_context *primary; /* in whose name it asks; it always exists */
	struct gpc_session_keeper keeper;

	/* The order in which changes go out; held while they are posted. */
	pthread_mutex_t send_lock;
	uint8_t *bytes; /* GP_CHANGES_MAX; under send_lock, like these: */
	uint8_t named[GP_HOST_RANGES_MAX * 16] __attribute__((aligned(8)));
	struct gp_picture picture;
	struct gpc_host_names names; /* that a picture has, which is not sent before */
	uint64_t writes;             /* records with changes that were posted */
	struct gpc_listed_copies listed;
	bool opened; /* gpHostMerge was posted, if the daemon has it */

	/* Of what follows.  Never held while something is posted: the reader of the connection
	 * takes it. */
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* for the thread */
	struct gpc_mirror_block *blocks;
	size_t count;
	uint64_t size;     /* of them all */
	uint64_t revision; /* of the list */
	struct gp_changes_range *ranges;
	size_t room; /* of them */
	struct gpc_mirror_fetch *under_way;
	struct gpc_sent *sent;
	uint64_t least_ns;       /* that an answer has taken; 0: none has come */
	uint32_t publish_number; /* the number that the daemon wants; 0: none */
	bool started;
	bool over;

	atomic_bool sleeps;
	/* All work up to this record is done, and what it has changed is here. */
	atomic_uint_fast64_t clean;
};

/* NULL: it has none. */
struct gpc_mirror *gpc_mirror_find(const struct gpc_session *session);

/* The ranges behind so many bytes of all blocks are in mirror->ranges; how many. */
size_t gpc_mirror_ranges_from(struct gpc_mirror *mirror, uint64_t skip) GP_LOCKED(mirror->lock);
/* Blocks of which the program has unmapped the memory. */
void gpc_mirror_drop_gone(struct gpc_mirror *mirror) GP_LOCKED(mirror->lock);
/* From the start, if the blocks are other ones than before. */
void gpc_mirror_look_around(struct gpc_mirror *mirror, struct gpc_mirror_way *way)
	GP_LOCKED(mirror->lock);
/* So much was asked for from way->at on, and so much of it is done. */
void gpc_mirror_go_on(struct gpc_mirror_way *way, uint64_t asked, uint64_t done);

/* The fetch is zeros but for `when`, NOW or CHANGED, and stays until gpc_mirror_end_fetch().  Where
 * there is no block behind the way, or too much to be told later, nothing is asked, and nothing is
 * to be ended. */
CUresult gpc_mirror_start_fetch(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch,
				struct gpc_mirror_way *way);
CUresult gpc_mirror_end_fetch(struct gpc_mirror_fetch *fetch, enum gp_picture_part part);
/* Waits until all that kernels had changed is here. */
CUresult gpc_mirror_fetch_all(struct gpc_mirror *mirror);

/* The thread gpupool-mirror; arg: the mirror. */
void *gpc_mirror_run(void *arg);

#endif /* GPC_MIRROR_STATE_H */
