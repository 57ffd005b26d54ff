/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/integers.h"
#include "server/common/base/size_text.h"
#include "server/common/ledger/ledger_internal.h"

#include <stdio.h>
#include <string.h>

/* A tenant that needs more of the shared host memory gets more than it needs, by this part of all
 * of it, so that few charges need a query. */
#define HOST_GRANTS 64

/* Chosen when the session opens, because the limit of a client cannot be lowered later. */
static uint64_t
choose_deferred_max(const struct gpd_ledger *ledger)
{
	uint64_t max = atomic_load(&ledger->host_max) / 2;
	uint64_t more = GP_DEFERRED_QUEUE_MAX - GPD_DEFERRED_QUEUE_MIN, total = 0;

	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));)
		total += s->deferred_max - GPD_DEFERRED_QUEUE_MIN;
	return max >= more && total <= max - more ? GP_DEFERRED_QUEUE_MAX : GPD_DEFERRED_QUEUE_MIN;
}

struct gpd_ledger_session *
gpd_ledger_open(struct gpd_ledger *ledger, uint64_t id, uint32_t tenant, int32_t worker)
{
	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		struct gpd_ledger_session *session = &ledger->sessions[i];

		if (atomic_load(&session->id) != 0)
			continue;
		/* Without a tenant's file, as in unit tests, the part is in the common file. */
		if (ledger->tenants[tenant].identity &&
		    !gpd_ledger_map_session(ledger, session, ledger->tenants[tenant].fd))
			return NULL;
		memset(session, 0, sizeof(*session));
		session->tenant = tenant;
		session->worker = worker;
		session->deferred_max = choose_deferred_max(ledger);
		for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
			atomic_init(&session->devices[d].allowed, 1);
			atomic_init(&session->devices[d].memory_max, GPD_NO_LIMIT);
		}
		atomic_init(&session->devices[GPD_LEDGER_CODE].memory_max, GPD_CODE_SESSION_MAX);
		atomic_init(&session->devices[GPD_LEDGER_PINNED].memory_max, GPD_NO_LIMIT);
		if (atomic_load(&ledger->sessions_used) <= (uint32_t)i)
			atomic_store(&ledger->sessions_used, (uint32_t)i + 1);
		atomic_store(&session->id, id);
		atomic_fetch_add(&ledger->sessions_open, 1);
		atomic_fetch_add(&ledger->tenants[tenant].sessions, 1);
		atomic_fetch_add(&ledger->tenants[tenant].sessions_total, 1);
		return session;
	}
	return NULL;
}

uint32_t
gpd_ledger_index(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session)
{
	return (uint32_t)(session - ledger->sessions);
}

struct gpd_ledger_session *
gpd_ledger_find(struct gpd_ledger *ledger, uint64_t id)
{
	struct gpd_ledger_session *session = gpd_ledger_next(ledger, NULL, GPD_LEDGER_ANY_WORKER);

	while (session && atomic_load(&session->id) != id)
		session = gpd_ledger_next(ledger, session, GPD_LEDGER_ANY_WORKER);
	return session;
}

void
gpd_ledger_summary(const struct gpd_ledger_session *session, char *text, size_t size)
{
	const struct gpd_ledger_counts *counts = &session->counts;
	char in[GPD_SIZE_TEXT_MAX], out[GPD_SIZE_TEXT_MAX], most[GPD_SIZE_TEXT_MAX];
	uint64_t peak = 0;

	for (int i = 0; i < GPD_LEDGER_DEVICES; i++)
		peak += atomic_load(&session->devices[i].memory_peak);
	snprintf(text, size, "%llu launches, %llu copies, %s in, %s out, at most %s of memory",
		 (unsigned long long)atomic_load(&counts->launches),
		 (unsigned long long)atomic_load(&counts->copies),
		 gpd_size_format(atomic_load(&counts->copied_in), in),
		 gpd_size_format(atomic_load(&counts->copied_out), out),
		 gpd_size_format(peak, most));
}

/* clang-format off */
#define ADD(name) gpd_ledger_count(&to->name, from->name);
/* clang-format on */

static void
tenant_add_counts(struct gpd_ledger_tenant *tenant, const struct gpd_ledger_session *session)
{
	const struct gpd_ledger_counts *from = &session->counts;
	struct gpd_ledger_counts *to = &tenant->ended;

	GPD_LEDGER_EACH_COUNT(ADD)
	for (int d = 0; d < GPD_LEDGER_DEVICES; d++)
		gpd_ledger_count(&tenant->devices[d].gpu_ns, session->devices[d].gpu_ns);
}

void
gpd_ledger_close(struct gpd_ledger *ledger, struct gpd_ledger_session *session)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	bool last;

	for (int d = 0; d < GPD_LEDGER_LINES; d++) {
		gpd_ledger_uncharge(ledger, session, d, atomic_load(&session->devices[d].memory));
		gpd_ledger_set_allowance(ledger, session, d, 0, 0);
	}
	gpd_ledger_uncharge_host(ledger, session, atomic_load(&session->host));
	/* Non-zero only if the worker was killed; otherwise it has released its slots. */
	gpd_ledger_refund_link(tenant, atomic_exchange(&session->link_ns, 0));
	tenant_add_counts(tenant, session);
	atomic_store(&session->ended, 0);
	atomic_store(&session->id, 0);
	atomic_fetch_sub(&ledger->sessions_open, 1);
	gpd_ledger_clear_session(session);
	last = atomic_fetch_sub(&tenant->sessions, 1) == 1;
	/* A worker that was killed in the middle of a charge has left the sum too high. */
	for (int d = 0; last && d < GPD_LEDGER_LINES; d++) {
		atomic_store(&tenant->devices[d].memory, 0);
		atomic_store(&tenant->devices[d].allowance, 0);
	}
	if (last)
		atomic_store(&tenant->host, 0);
}

struct gpd_ledger_session *
gpd_ledger_next(const struct gpd_ledger *ledger, const struct gpd_ledger_session *after,
		int32_t worker)
{
	const struct gpd_ledger_session *end =
		ledger->sessions + atomic_load(&ledger->sessions_used);

	for (after = after ? after + 1 : ledger->sessions; after < end; after++) {
		if (atomic_load(&after->id) &&
		    (worker == GPD_LEDGER_ANY_WORKER || after->worker == worker))
			return (struct gpd_ledger_session *)after;
	}
	return NULL;
}

void
gpd_ledger_close_worker(struct gpd_ledger *ledger, int32_t worker)
{
	for (struct gpd_ledger_session *s = NULL; (s = gpd_ledger_next(ledger, s, worker));)
		gpd_ledger_close(ledger, s);
}

static bool
counter_try_add(_Atomic uint64_t *used, uint64_t max, uint64_t bytes)
{
	uint64_t before = atomic_load(used);

	do {
		if (bytes > max || before > max - bytes)
			return false;
	} while (!atomic_compare_exchange_weak(used, &before, before + bytes));
	return true;
}

static void
line_raise_peak(struct gpd_ledger_line *line)
{
	uint64_t now = GPD_LEDGER_IN_USE(line);
	uint64_t peak = atomic_load(&line->memory_peak);

	while (peak < now && !atomic_compare_exchange_weak(&line->memory_peak, &peak, now))
		continue;
}

bool
gpd_ledger_charge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		  uint64_t bytes)
{
	struct gpd_ledger_tenant_line *tenant = &ledger->tenants[session->tenant].devices[device];
	struct gpd_ledger_line *line = &session->devices[device];
	uint64_t there_is = atomic_load(&ledger->device_memory[device]);

	/* Otherwise an allocation that can never succeed would be charged for a moment against
	 * other sessions with the same quota. */
	if (there_is && bytes > there_is)
		return false;
	if (!counter_try_add(&tenant->memory, atomic_load(&tenant->memory_max), bytes))
		return false;
	if (!counter_try_add(&line->memory, atomic_load(&line->memory_max), bytes)) {
		atomic_fetch_sub(&tenant->memory, bytes);
		return false;
	}
	line_raise_peak(line);
	return true;
}

void
gpd_ledger_set_allowance(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
			 uint64_t bytes, uint64_t allowance_backing)
{
	struct gpd_ledger_tenant_line *tenant = &ledger->tenants[session->tenant].devices[device];
	struct gpd_ledger_line *line = &session->devices[device];

	/* The difference is modulo 2^64, so this subtracts as well. */
	atomic_fetch_add(&tenant->allowance, bytes - atomic_exchange(&line->allowance, bytes));
	atomic_store(&line->allowance_backing, allowance_backing);
	line_raise_peak(line);
}

void
gpd_ledger_uncharge(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int device,
		    uint64_t bytes)
{
	atomic_fetch_sub(&session->devices[device].memory, bytes);
	atomic_fetch_sub(&ledger->tenants[session->tenant].devices[device].memory, bytes);
}

/* The tenant's sum does not change. The order matters: if the worker is killed in between, the sum
 * is too high, which is corrected when the tenant's last session closes. */
void
gpd_ledger_move_charge(struct gpd_ledger_session *from, struct gpd_ledger_session *to, int device,
		       uint64_t bytes)
{
	atomic_fetch_sub(&from->devices[device].memory, bytes);
	atomic_fetch_add(&to->devices[device].memory, bytes);
	line_raise_peak(&to->devices[device]);
}

/* Returns the part that counts against the limit shared with other sessions. */
static uint64_t
host_excess(uint64_t bytes)
{
	return bytes > GPD_HOST_MIN ? bytes - GPD_HOST_MIN : 0;
}

/* A worker may charge to a grant while it is withdrawn: the sum then exceeds the limit by these
 * bytes. */
bool
gpd_ledger_grant_host(struct gpd_ledger *ledger, struct gpd_ledger_tenant *tenant, uint64_t bytes)
{
	uint64_t max = atomic_load(&ledger->host_max) / 2, others = 0;
	uint64_t used = atomic_load(&tenant->host), more;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		struct gpd_ledger_tenant *other = &ledger->tenants[i];
		uint64_t granted = atomic_load(&other->host_granted);

		if (other == tenant || !granted)
			continue;
		granted = gpd_u64_min(granted, atomic_load(&other->host));
		atomic_store(&other->host_granted, granted);
		others += granted;
	}
	if (others > max || used > max - others || bytes > max - others - used)
		return false;
	more = gpd_u64_min(max - others - used, bytes + max / HOST_GRANTS);
	atomic_store(&tenant->host_granted, used + more);
	return true;
}

void
gpd_ledger_set_host_max(struct gpd_ledger *ledger, uint64_t bytes)
{
	if (atomic_exchange(&ledger->host_max, bytes) == bytes)
		return;
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		struct gpd_ledger_tenant *tenant = &ledger->tenants[i];

		atomic_store(&tenant->host_granted,
			     gpd_u64_min(atomic_load(&tenant->host), bytes / 2));
	}
}

/* Adds to the tenant's use of the host memory that all sessions share. */
static bool
host_try_add(struct gpd_ledger *ledger, const struct gpd_ledger_session *session, uint64_t bytes)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];

	if (atomic_load(&ledger->host_max) == GPD_NO_LIMIT)
		return counter_try_add(&tenant->host, GPD_NO_LIMIT, bytes);
	/* Other threads may use the grant first. */
	while (!counter_try_add(&tenant->host, atomic_load(&tenant->host_granted), bytes)) {
		if (!gpd_ledger_query_host(ledger, session, bytes))
			return false;
	}
	return true;
}

bool
gpd_ledger_charge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
		       uint64_t bytes)
{
	uint64_t before = atomic_load(&session->host);

	for (;;) {
		uint64_t more = host_excess(before + bytes) - host_excess(before);

		if (more && !host_try_add(ledger, session, more))
			return false;
		if (atomic_compare_exchange_weak(&session->host, &before, before + bytes))
			return true;
		/* Another thread of the session changed the value first. */
		atomic_fetch_sub(&ledger->tenants[session->tenant].host, more);
	}
}

void
gpd_ledger_uncharge_host(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			 uint64_t bytes)
{
	uint64_t before = atomic_fetch_sub(&session->host, bytes);

	atomic_fetch_sub(&ledger->tenants[session->tenant].host,
			 host_excess(before) - host_excess(before - bytes));
}

static uint64_t
quota_left(uint64_t max, uint64_t used)
{
	if (max == GPD_NO_LIMIT)
		return GPD_NO_LIMIT;
	return used < max ? max - used : 0;
}

struct gpd_ledger_headroom
gpd_ledger_headroom(const struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		    int device, uint64_t cached)
{
	const struct gpd_ledger_tenant_line *tenant =
		&ledger->tenants[session->tenant].devices[device];
	const struct gpd_ledger_line *line = &session->devices[device];
	uint64_t tenant_max = atomic_load(&tenant->memory_max);
	uint64_t session_max = atomic_load(&line->memory_max);
	uint64_t tenant_memory = atomic_load(&tenant->memory);
	uint64_t tenant_left =
		quota_left(tenant_max, tenant_memory > cached ? tenant_memory - cached : 0);
	uint64_t session_left = quota_left(session_max, atomic_load(&line->memory));

	return (struct gpd_ledger_headroom){
		.max = tenant_max < session_max ? tenant_max : session_max,
		.left = tenant_left < session_left ? tenant_left : session_left,
	};
}
