/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions with a dedicated worker. A process and a CUDA context are expensive, so one is started
 * only for a client that already has a session slot, and few at a time; the slot becomes free when
 * the process has exited. A worker that is still starting when its client disconnects is killed.
 */
#include "server/supervisor/admission/admission_internal.h"

#include <signal.h>

/* How long a client waits for a slot of a process that is exiting, which takes a while. */
#define FULL_ENDING_MS 10000

/* Returns whether the worker's client has disconnected. */
static bool
worker_is_abandoned(const struct gpd_worker_process *c)
{
	return gpd_worker_process_is_dedicated(c) && c->state >= GPD_WORKER_ABANDONED;
}

/* client_address NULL: of all addresses. */
static int
count_abandoned(const struct gpd_admission *admission,
		const struct gpd_client_address *client_address)
{
	int count = 0;

	for (const struct gpd_worker_process *c = admission->workers; c; c = c->next)
		count += worker_is_abandoned(c) &&
			 (!client_address || c->client_address == client_address);
	return count;
}

void
gpd_admission_open_dedicated(struct gpd_admission *admission, struct gpd_connection *connection)
{
	int ending = count_abandoned(admission, NULL);
	int64_t wait_ms = ending ? FULL_ENDING_MS : GPD_SLOT_WAIT_MS;
	/* Exclude the connection itself, which is counted unless it waits. */
	int self = connection->full_reason[0] ? 0 : 1;
	const char *full_reason = gpd_admission_get_full_reason(
		admission, connection, ending - self,
		count_abandoned(admission, connection->client_address) - self);

	if (full_reason) {
		connection->limit = GPD_QUEUE_FOR_DAEMON;
		gpd_admission_wait_for_slot(admission, connection, full_reason, wait_ms);
		return;
	}
	if (gpd_admission_acquire_slot(admission, connection, wait_ms))
		gpd_admission_set_state(admission, connection, GPD_CONNECTION_STARTING,
					GPD_QUEUED_MS);
}

/* Tenants take turns, and among the clients of a tenant their addresses. */
static bool
starts_before(const struct gpd_admission *admission, const struct gpd_connection *a,
	      const struct gpd_connection *b)
{
	uint64_t tenant_a = admission->tenant_starts[a->assignment.tenant];
	uint64_t tenant_b = admission->tenant_starts[b->assignment.tenant];
	uint64_t start_a = a->client_address->last_start;
	uint64_t start_b = b->client_address->last_start;

	if (tenant_a != tenant_b)
		return tenant_a < tenant_b;
	return start_a != start_b ? start_a < start_b : a->session < b->session;
}

/* Returns the next client whose worker may be started now, or NULL. */
static struct gpd_connection *
find_next_to_start(const struct gpd_admission *admission)
{
	struct gpd_connection *first = NULL;

	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->state == GPD_CONNECTION_STARTING && !p->own_worker &&
		    (!first || starts_before(admission, p, first)) &&
		    admission->may_start(admission->arg, p))
			first = p;
	}
	return first;
}

/* Starts a worker for the session, which has a slot. */
static void
worker_start(struct gpd_admission *admission, struct gpd_connection *connection)
{
	struct gpd_ledger_session *entry =
		gpd_ledger_find(admission->quota->ledger, connection->session);
	const struct gpd_assignment *assignment = &connection->assignment;
	struct gpd_worker_process *process;
	char error[GPD_CONFIG_ERROR_MAX];

	/* A device may have become sick while the session waited for its turn. */
	if (gpd_tenants_check_assigned(&admission->quota->tenants, assignment, error)) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__DEVICE,
				     error);
		return;
	}
	process = entry ? admission->start_dedicated(admission->arg, connection) : NULL;
	if (!process) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__WORKER,
				     "cannot start a process for the session");
		return;
	}
	/* From here on the slot becomes free when the process has exited. */
	entry->worker = process->pid;
	process->client_address = connection->client_address;
	process->client_address->users++;
	connection->own_worker = process;
	admission->tenant_starts[connection->assignment.tenant] = ++admission->starts;
	connection->client_address->last_start = admission->starts;
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_STARTING, GPD_QUEUED_MS);
	/* It was spare. */
	if (process->state == GPD_WORKER_SPARE)
		(void)gpd_admission_dedicated_ready(admission, process);
}

void
gpd_admission_start_workers(struct gpd_admission *admission)
{
	struct gpd_connection *connection;

	while ((connection = find_next_to_start(admission)))
		worker_start(admission, connection);
}

bool
gpd_admission_dedicated_ready(struct gpd_admission *admission, struct gpd_worker_process *worker)
{
	const struct gpd_ledger_session *entry;
	struct gpd_connection *connection = admission->connection_list;

	while (connection &&
	       (connection->own_worker != worker || connection->state != GPD_CONNECTION_STARTING))
		connection = connection->next;
	entry = connection ? gpd_ledger_find(admission->quota->ledger, connection->session) : NULL;
	if (!entry || !gpd_worker_process_set_state(worker, GPD_WORKER_DEDICATED))
		return false;
	gpd_admission_request_open(admission, connection, worker, entry);
	/* The worker exits after its session. */
	gpd_admission_send_session(worker, GPD_CHANNEL_RETIRE, 0, NULL, 0);
	return true;
}

void
gpd_admission_abandon_worker(struct gpd_admission *admission, struct gpd_connection *connection)
{
	struct gpd_worker_process *own_worker = connection->own_worker;

	if (!own_worker && connection->state == GPD_CONNECTION_STARTING)
		gpd_quota_close(admission->quota, connection->session);
	if (!own_worker)
		return;
	/* Before it is ready there is no work to lose. */
	if (own_worker->state == GPD_WORKER_STARTING &&
	    gpd_worker_process_set_state(own_worker, GPD_WORKER_ENDING))
		(void)kill(own_worker->pid, SIGKILL);
	else if (own_worker->state == GPD_WORKER_DEDICATED)
		(void)gpd_worker_process_set_state(own_worker, GPD_WORKER_ABANDONED);
}
