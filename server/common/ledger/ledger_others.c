/* SPDX-License-Identifier: Apache-2.0 */
/* Other sessions: recalls, frees and ends that an allocation waits for. The supervisor looks at
 * them; a worker queries the supervisor. */
#include "base/clock.h"
#include "server/common/base/integers.h"
#include "server/common/ledger/ledger_internal.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Time after which a query counts as unanswered. */
#define ANSWER_NS UINT64_C(1000000000)

/* Queries of this process, as a worker. */
static struct {
	gpd_ledger_send_query *send;
	pthread_mutex_t lock; /* held during a query */
	uint32_t serial;      /* of the last query; protected by lock */
} queries = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
gpd_ledger_set_query(gpd_ledger_send_query *send)
{
	queries.send = send;
}

/* Sends the query and waits for its answer. Returns false if there is none. */
static bool
query_send_locked(const struct gpd_ledger_session *session, struct gpd_ledger_query *query)
{
	const _Atomic uint32_t *serial = &session->answer.serial;
	uint64_t until = gp_now_ns() + ANSWER_NS, now = 0;
	uint32_t seen;

	query->serial = ++queries.serial;
	if (!queries.send || !queries.send(atomic_load(&session->id), query))
		return false;
	while ((seen = atomic_load(serial)) != query->serial && (now = gp_now_ns()) < until) {
		const struct timespec left = { .tv_sec = (time_t)((until - now) / 1000000000),
					       .tv_nsec = (long)((until - now) % 1000000000) };

		(void)syscall(SYS_futex, serial, FUTEX_WAIT, seen, &left, NULL, 0);
	}
	return seen == query->serial;
}

static struct gpd_ledger_answer answer_compute(struct gpd_ledger *ledger,
					       struct gpd_ledger_session *session,
					       const struct gpd_ledger_query *query);

static struct gpd_ledger_answer
ledger_query(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
	     struct gpd_ledger_query query)
{
	struct gpd_ledger_answer answer = { 0 };

	if (!gpd_ledger_is_attached(ledger))
		return answer_compute((struct gpd_ledger *)ledger,
				      (struct gpd_ledger_session *)session, &query);
	if (atomic_load(&ledger->sessions_open) <= 1 && query.type != GPD_LEDGER_HOST)
		return answer;
	pthread_mutex_lock(&queries.lock);
	if (query_send_locked(session, &query)) {
		answer.result = session->answer.result;
		answer.reclaimable = session->answer.reclaimable;
	}
	pthread_mutex_unlock(&queries.lock);
	return answer;
}

void
gpd_ledger_answer(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		  const struct gpd_ledger_query *query)
{
	struct gpd_ledger_answer answer = answer_compute(ledger, session, query);

	session->answer.result = answer.result;
	session->answer.reclaimable = answer.reclaimable;
	atomic_store(&session->answer.serial, query->serial);
	(void)syscall(SYS_futex, &session->answer.serial, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Iterates over the other sessions, of all tenants or of the same. */
static struct gpd_ledger_session *
next_other_session(const struct gpd_ledger *ledger, const struct gpd_ledger_session *after,
		   const struct gpd_ledger_session *session, bool of_tenant)
{
	struct gpd_ledger_session *other = gpd_ledger_next(ledger, after, GPD_LEDGER_ANY_WORKER);

	while (other && (other == session || (of_tenant && other->tenant != session->tenant)))
		other = gpd_ledger_next(ledger, other, GPD_LEDGER_ANY_WORKER);
	return other;
}

void
gpd_ledger_set_closing(struct gpd_ledger *ledger, struct gpd_ledger_session *session)
{
	(void)ledger;
	atomic_store(&session->ended, 1);
}

static bool
others_are_closing(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	for (const struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, false));) {
		if (atomic_load(&other->ended))
			return true;
	}
	return false;
}

bool
gpd_ledger_has_closing(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_CLOSING })
		.result;
}

static bool
others_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session, bool of_tenant)
{
	bool any = false;

	for (struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, of_tenant));) {
		uint32_t cache_state = GPD_CACHE_FILLED;

		if (atomic_load(&other->cache_state) != GPD_CACHE_FILLED)
			continue;
		atomic_store(&other->recalled_ns, gp_now_ns());
		atomic_store(&other->recall_extension_ns, 0);
		any = atomic_compare_exchange_strong(&other->cache_state, &cache_state,
						     GPD_CACHE_RECALLED) ||
		      any;
	}
	return any;
}

bool
gpd_ledger_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		  bool of_tenant)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_RECALL,
						       .of_tenant = of_tenant })
		.result;
}

/* Returns whether `other` belongs to another tenant that was marked slow (at slow_ns) before
 * requested_ns, less than GPD_SLOW_NS ago. */
static bool
is_excluded_as_slow(uint64_t slow_ns, const struct gpd_ledger_session *other,
		    const struct gpd_ledger_session *session, uint64_t requested_ns, uint64_t now)
{
	return other->tenant != session->tenant && slow_ns && slow_ns <= requested_ns &&
	       now - slow_ns < GPD_SLOW_NS;
}

/* Keeps the first time of several: recalls made before it do not wait much longer anyway. */
static void
set_tenant_slow(_Atomic uint64_t *slow_ns, uint64_t now)
{
	uint64_t before = atomic_load(slow_ns);

	if (!before || now - before >= GPD_SLOW_NS)
		(void)atomic_compare_exchange_strong(slow_ns, &before, now);
}

uint32_t
gpd_ledger_free_begin(struct gpd_ledger_session *session)
{
	uint32_t epoch = atomic_load(&session->pending_epoch);

	atomic_fetch_add(&session->pending_frees[epoch], 1);
	return epoch;
}

void
gpd_ledger_free_end(struct gpd_ledger_session *session, uint32_t epoch)
{
	atomic_fetch_sub(&session->pending_frees[epoch], 1);
}

/* Returns whether a free takes too long. Only waiters read the clock: once all frees of the
 * previous epoch have ended, the epochs are swapped, and those that began until now are timed. */
static bool
frees_are_late(struct gpd_ledger_session *session, uint64_t now)
{
	uint32_t epoch = atomic_load(&session->pending_epoch);
	uint64_t since = atomic_load(&session->pending_epoch_ns);

	if (atomic_load(&session->pending_frees[!epoch]))
		return now > since && now - since > GPD_FREE_LATE_NS;
	if (atomic_compare_exchange_strong(&session->pending_epoch_ns, &since, now))
		atomic_store(&session->pending_epoch, !epoch);
	return false;
}

static bool
others_have_pending_frees(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			  bool of_tenant, uint64_t waited_ns)
{
	uint64_t now = gp_now_ns();
	bool any = false;

	for (struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, of_tenant));) {
		_Atomic uint64_t *slow_ns = &ledger->tenants[other->tenant].frees_slow_ns;

		if (!atomic_load(&other->pending_frees[0]) &&
		    !atomic_load(&other->pending_frees[1]))
			continue;
		if (frees_are_late(other, now)) {
			atomic_store(&other->frees_slow, 1);
			set_tenant_slow(slow_ns, now);
			continue;
		}
		if (waited_ns <= GPD_FREE_SLOW_NS ||
		    (!atomic_load(&other->frees_slow) &&
		     !is_excluded_as_slow(atomic_load(slow_ns), other, session, now, now)))
			any = true;
	}
	return any;
}

bool
gpd_ledger_has_pending_frees(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			     bool of_tenant, uint64_t waited_ns)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_PENDING_FREES,
						       .of_tenant = of_tenant,
						       .amount = waited_ns })
		.result;
}

/* Returns whether the recall has taken longer than a well-behaved client needs. */
static bool
recall_is_late(const struct gpd_ledger_session *session, uint64_t now)
{
	return atomic_load(&session->cache_state) == GPD_CACHE_RECALLED &&
	       now - atomic_load(&session->recalled_ns) >
		       GPD_RECALL_LATE_NS + atomic_load(&session->recall_extension_ns);
}

/* Returns whether the other session has been recalled and may still release its cache in time. */
static bool
recall_is_pending(const struct gpd_ledger *ledger, const struct gpd_ledger_session *other,
		  const struct gpd_ledger_session *session, uint64_t now)
{
	uint64_t recalled_ns = atomic_load(&other->recalled_ns);

	return atomic_load(&other->cache_state) == GPD_CACHE_RECALLED &&
	       !atomic_load(&other->slow) && now - recalled_ns < GPD_RECALL_NS &&
	       !is_excluded_as_slow(atomic_load(&ledger->tenants[other->tenant].slow_ns), other,
				    session, recalled_ns, now);
}

/* Returns whether the other session would release its cached memory in time. */
static bool
session_can_release(const struct gpd_ledger *ledger, const struct gpd_ledger_session *other,
		    const struct gpd_ledger_session *session, uint64_t now)
{
	return (atomic_load(&other->cache_state) == GPD_CACHE_FILLED &&
		!atomic_load(&other->slow) &&
		!is_excluded_as_slow(atomic_load(&ledger->tenants[other->tenant].slow_ns), other,
				     session, now, now)) ||
	       recall_is_pending(ledger, other, session, now);
}

void
gpd_ledger_set_cached(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		      bool cache_state)
{
	uint64_t now = gp_now_ns();

	if (recall_is_late(session, now)) {
		atomic_store(&session->slow, 1);
		set_tenant_slow(&ledger->tenants[session->tenant].slow_ns, now);
	}
	atomic_store(&session->cache_state, cache_state ? GPD_CACHE_FILLED : GPD_CACHE_EMPTY);
}

void
gpd_ledger_extend_recall(struct gpd_ledger_session *session, uint64_t ns)
{
	atomic_fetch_add(&session->recall_extension_ns, ns);
}

static bool
others_have_pending_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			   bool of_tenant)
{
	uint64_t now = gp_now_ns();
	bool any = false;

	for (struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, of_tenant));) {
		if (!recall_is_pending(ledger, other, session, now) || atomic_load(&other->waiting))
			continue;
		any = true;
		/* The other session may end before it responds; gpd_ledger_set_cached() would not
		 * run then. */
		if (recall_is_late(other, now))
			set_tenant_slow(&ledger->tenants[other->tenant].slow_ns, now);
	}
	return any;
}

bool
gpd_ledger_has_pending_recall(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
			      bool of_tenant)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_PENDING_RECALL,
						       .of_tenant = of_tenant })
		.result;
}

static struct gpd_ledger_reclaimable
others_reclaimable(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		   int device)
{
	struct gpd_ledger_reclaimable cached = { 0 };
	uint64_t now = gp_now_ns();

	for (const struct gpd_ledger_session *other = NULL;
	     (other = next_other_session(ledger, other, session, false));) {
		const struct gpd_ledger_line *line = &other->devices[device];
		uint64_t bytes;

		if (!session_can_release(ledger, other, session, now))
			continue;
		bytes = gpd_u64_min(atomic_load(&line->cached), GPD_LEDGER_IN_USE(line));
		cached.of_device += bytes + atomic_load(&line->allowance_backing);
		if (other->tenant == session->tenant)
			cached.of_tenant += bytes + atomic_load(&line->allowance);
	}
	return cached;
}

struct gpd_ledger_reclaimable
gpd_ledger_reclaimable(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       int device)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_RECLAIMABLE,
						       .device = device })
		.reclaimable;
}

bool
gpd_ledger_query_host(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		      uint64_t bytes)
{
	return ledger_query(ledger, session,
			    (struct gpd_ledger_query){ .type = GPD_LEDGER_HOST, .amount = bytes })
		.result;
}

static struct gpd_ledger_answer
answer_compute(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
	       const struct gpd_ledger_query *query)
{
	struct gpd_ledger_answer answer = { 0 };

	switch (query->type) {
	case GPD_LEDGER_RECALL:
		answer.result = others_recall(ledger, session, query->of_tenant);
		break;
	case GPD_LEDGER_PENDING_RECALL:
		answer.result = others_have_pending_recall(ledger, session, query->of_tenant);
		break;
	case GPD_LEDGER_PENDING_FREES:
		answer.result =
			others_have_pending_frees(ledger, session, query->of_tenant, query->amount);
		break;
	case GPD_LEDGER_CLOSING:
		answer.result = others_are_closing(ledger, session);
		break;
	case GPD_LEDGER_RECLAIMABLE:
		if (query->device >= 0 && query->device < GPD_LEDGER_LINES)
			answer.reclaimable = others_reclaimable(ledger, session, query->device);
		break;
	case GPD_LEDGER_HOST:
		answer.result = gpd_ledger_grant_host(ledger, &ledger->tenants[session->tenant],
						      query->amount);
		break;
	}
	return answer;
}
