/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that have a worker of their own.  A process and a CUDA context are dear, so one is
 * started only for a client that has a place for its session already, and few at a time; the place
 * is given back when the process has ended.  One that starts for a client that has gone is killed.
 */
#include "server/supervisor/admission/admission_state.h"

#include <signal.h>

/* They keep the driver and the processors busy while others work. */
#define STARTING_MAX 4
/* For a place that somebody may be about to leave: a process takes a while to end. */
#define FULL_ENDING_MS 10000

/* Those that end before they were ready are among them. */
static int
count_starting(const struct gpd_admission *admission)
{
	int count = 0;

	for (const struct gpd_child *c = admission->workers; c; c = c->next)
		count += gpd_child_is_own(c) && !c->facts;
	return count;
}

/* Processes whose clients have gone. */
static bool
is_abandoned(const struct gpd_child *c)
{
	return gpd_child_is_own(c) && c->state >= GPD_CHILD_ABANDONED;
}

/* source: those of this address, NULL: all. */
static int
count_abandoned(const struct gpd_admission *admission, const struct gpd_source *source)
{
	int count = 0;

	for (const struct gpd_child *c = admission->workers; c; c = c->next)
		count += is_abandoned(c) && (!source || c->source == source);
	return count;
}

void
gpd_admission_open_alone(struct gpd_admission *admission, struct gpd_peer *peer)
{
	int ending = count_abandoned(admission, NULL);
	int64_t wait_ms = ending ? FULL_ENDING_MS : GPD_FULL_MS;
	/* All but the peer itself, which counts unless it waits. */
	int self = peer->full[0] ? 0 : 1;
	const char *full = gpd_admission_why_full(admission, peer, ending - self,
						  count_abandoned(admission, peer->source) - self);

	peer->full_for_any = full != NULL;
	if (full) {
		gpd_admission_wait_for_place(admission, peer, full, wait_ms);
		return;
	}
	if (gpd_admission_take_place(admission, peer, wait_ms))
		gpd_admission_set_state(admission, peer, GPD_PEER_STARTING, GPD_QUEUED_MS);
}

/* Tenants take turns, and among their clients addresses. */
static bool
is_before(const struct gpd_admission *admission, const struct gpd_peer *a, const struct gpd_peer *b)
{
	uint64_t tenant_a = admission->tenant_starts[a->grant.tenant];
	uint64_t tenant_b = admission->tenant_starts[b->grant.tenant];
	uint64_t start_a = a->source->last_start;
	uint64_t start_b = b->source->last_start;

	if (tenant_a != tenant_b)
		return tenant_a < tenant_b;
	return start_a != start_b ? start_a < start_b : a->session < b->session;
}

static struct gpd_peer *
whose_turn(const struct gpd_admission *admission)
{
	struct gpd_peer *first = NULL;

	for (struct gpd_peer *p = admission->peers; p; p = p->next) {
		if (p->state == GPD_PEER_STARTING && !p->own &&
		    (!first || is_before(admission, p, first)))
			first = p;
	}
	return first;
}

/* It is the session's that has the place. */
static void
start_worker(struct gpd_admission *admission, struct gpd_peer *peer)
{
	struct gpd_ledger_session *line = gpd_ledger_find(admission->quota->ledger, peer->session);
	struct gpd_child *child = line ? admission->start_alone(admission->arg) : NULL;

	if (!child) {
		gpd_admission_refuse(admission, peer, GPUPOOL__REFUSED__REASON__WORKER,
				     "no process can be started for the session");
		return;
	}
	/* From now on the place is free when the process has ended. */
	line->worker = child->pid;
	child->source = peer->source;
	child->source->users++;
	peer->own = child;
	admission->tenant_starts[peer->grant.tenant] = ++admission->starts;
	peer->source->last_start = admission->starts;
	gpd_admission_set_state(admission, peer, GPD_PEER_STARTING, GPD_QUEUED_MS);
	/* It was in reserve. */
	if (child->state == GPD_CHILD_SPARE)
		(void)gpd_admission_alone_ready(admission, child);
}

void
gpd_admission_start_workers(struct gpd_admission *admission)
{
	struct gpd_peer *peer;

	while ((peer = whose_turn(admission)) && count_starting(admission) < STARTING_MAX)
		start_worker(admission, peer);
}

bool
gpd_admission_alone_ready(struct gpd_admission *admission, struct gpd_child *worker)
{
	const struct gpd_ledger_session *line;
	struct gpd_peer *peer = admission->peers;

	while (peer && (peer->own != worker || peer->state != GPD_PEER_STARTING))
		peer = peer->next;
	line = peer ? gpd_ledger_find(admission->quota->ledger, peer->session) : NULL;
	if (!line || !gpd_child_set_state(worker, GPD_CHILD_OWN))
		return false;
	gpd_admission_ask_to_open(admission, peer, worker, line);
	/* It ends with its session. */
	gpd_admission_tell_session(worker, GPD_CHANNEL_RETIRE, 0, NULL, 0);
	return true;
}

void
gpd_admission_abandon_own(struct gpd_admission *admission, struct gpd_peer *peer)
{
	struct gpd_child *own = peer->own;

	if (!own && peer->state == GPD_PEER_STARTING)
		gpd_quota_close(admission->quota, peer->session);
	if (!own)
		return;
	/* Before it is ready it has nothing that somebody would miss. */
	if (own->state == GPD_CHILD_STARTING && gpd_child_set_state(own, GPD_CHILD_ENDING))
		(void)kill(own->pid, SIGKILL);
	else if (own->state == GPD_CHILD_OWN)
		(void)gpd_child_set_state(own, GPD_CHILD_ABANDONED);
}
