/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's workers: their start, who of them gets new sessions, and their death.
 *
 * One serves at a time.  Others end with the sessions that they still have, or serve one session
 * alone, which the admission has asked for.  One that was retired only because work of clients that
 * are gone went on there may serve again when that has ended (orphans.h).  Sessions are told of a
 * death by the admission; another worker then starts by itself.  Main thread only.
 */
#ifndef GPD_CHILDREN_H
#define GPD_CHILDREN_H

#include "server/supervisor/admission/admission.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/tenancy/quota.h"
#include "server/supervisor/workers/child.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_children {
	const struct gpd_options *options;
	struct gpd_admission *admission;
	struct gpd_quota *quota;
	struct gpd_child *list;
	struct gpd_child *serving;   /* or starting to; NULL: none */
	struct gpd_child *successor; /* starts, or waits, to take its place */
	int64_t start_ms;            /* when to start one, if none serves */
	int quick_deaths;
	bool served;   /* one was ready once */
	bool useless;  /* the first could not start, and standard error says why */
	bool stopping; /* no more are started */
};

/* Starts none yet.  The admission gets its workers for single sessions here from now on. */
void gpd_children_init(struct gpd_children *children, const struct gpd_options *options,
		       struct gpd_admission *admission, struct gpd_quota *quota);
/* Kills those that are left, and waits for them. */
void gpd_children_fini(struct gpd_children *children);

/* How many descriptors gpd_children_poll() needs at most. */
size_t gpd_children_count(const struct gpd_children *children);
/* How many there are to poll. */
int gpd_children_poll(struct gpd_children *children, struct pollfd *fds);
/* After the poll: what they say.  Some may start meanwhile, but none goes. */
void gpd_children_serve(struct gpd_children *children, const struct pollfd *fds);
/* After SIGCHLD. */
void gpd_children_reap(struct gpd_children *children);
/* Kills whoever is late, and starts what is due. */
void gpd_children_check(struct gpd_children *children, int64_t now_ms);
/* When to check next; INT64_MAX: never. */
int64_t gpd_children_deadline(const struct gpd_children *children);

/* Asks all to end. */
void gpd_children_stop(struct gpd_children *children);
/* The worker gets no new sessions, and ends with its last.  False: none of this number serves. */
bool gpd_children_retire(struct gpd_children *children, pid_t worker);

#endif /* GPD_CHILDREN_H */
