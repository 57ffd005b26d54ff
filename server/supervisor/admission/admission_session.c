/* SPDX-License-Identifier: Apache-2.0 */
/* From Hello to the end of the session: selects a slot, a worker and an address window, and handles
 * the worker's replies. */
#include "base/clock.h"
#include "protocol/pack.h"
#include "protocol/printable.h"
#include "protocol/ticket.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_internal.h"
#include "server/supervisor/auth/control_reply.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* Protocol features that this daemon supports. */
#define FEATURES                                                                                   \
	((uint64_t)GP_FEATURE_SPREAD | GP_FEATURE_LZ4 | GP_FEATURE_SHM | GP_FEATURE_LATE |         \
	 GP_FEATURE_TENANT_WORKERS)
#define OPENING_MS 15000
/* How long a client waits for the place of a worker that is about to exit. */
#define PLACE_SOON_MS 10000
/* Size of the host name and of the program name in the log. */
#define NAME_MAX_SIZE 52
/* A client may request several windows until one is free in its own address space. */
#define WINDOWS_MAX 16

/* Sends OPEN or MOVE_WINDOW. */
static void
window_request(const struct gpd_admission *admission, struct gpd_connection *connection,
	       enum gpd_channel_type type, uint32_t entry, uint64_t size, Gpupool__Range **avoid,
	       size_t avoid_count)
{
	union {
		struct gpd_channel_open open;
		char room[sizeof(struct gpd_channel_open) +
			  GPD_AVOID_MAX * sizeof(struct gpd_range)];
	} message;
	struct gpd_channel_header header = { .type = type, .session = connection->session };
	size_t used;
	int fd = -1;

	if (avoid_count > GPD_AVOID_MAX)
		avoid_count = GPD_AVOID_MAX;
	used = sizeof(struct gpd_channel_open) + avoid_count * sizeof(struct gpd_range);
	memset(&message, 0, used);
	snprintf(message.open.peer, sizeof(message.open.peer), "%s", connection->name);
	message.open.window_size = size;
	message.open.entry = entry;
	if (type == GPD_CHANNEL_OPEN) {
		const ProtobufCBinaryData *program = &connection->hello->hello->program_key;
		const struct gpd_ledger *ledger = admission->quota->ledger;

		/* On failure the worker reports why it cannot open the session. */
		fd = gpd_ledger_share(ledger, &ledger->sessions[entry]);
		memcpy(message.open.ticket, connection->ticket, sizeof(message.open.ticket));
		if (program->len == sizeof(message.open.program))
			memcpy(message.open.program, program->data, program->len);
		snprintf(message.open.authenticated_by, sizeof(message.open.authenticated_by), "%s",
			 gpd_session_owner(&admission->session_owners, entry, connection->session)
				 ->credentials);
		snprintf(message.open.notice, sizeof(message.open.notice), "%s",
			 connection->notice);
	}
	message.open.lanes_max = connection->lanes_max;
	message.open.features = connection->features;
	message.open.compression = connection->assignment.compression;
	message.open.avoid_count = (uint32_t)avoid_count;
	for (size_t i = 0; i < avoid_count; i++)
		message.open.avoid[i] = (struct gpd_range){ avoid[i]->address, avoid[i]->size };
	gpd_admission_send(connection->worker, &header, &message, used, fd);
	explicit_bzero(message.open.ticket, sizeof(message.open.ticket));
}

/* Returns how long the request is kept until there is a slot; 0: the client is not in the queue, or
 * prefers to send another request. */
static int64_t
max_wait_ms(const struct gpd_admission *admission, const struct gpd_connection *connection)
{
	const Gpupool__Hello *hello = connection->hello->hello;

	if (!gpd_queue_has(&admission->quota->queue, hello->wait))
		return 0;
	return hello->patience_ms < GPD_WAIT_MAX_MS ? hello->patience_ms : GPD_WAIT_MAX_MS;
}

/* Returns why no session is admitted at all, or NULL. */
static const char *
get_closed_reason(const struct gpd_admission *admission)
{
	if (admission->stopping)
		return "the daemon is stopping";
	return admission->draining ? "the daemon is draining (gpupoolctl drain)" : NULL;
}

/* Keeps one request per queue number: the connection of the previous one may be lost. */
static void
drop_duplicate_request(struct gpd_admission *admission, const struct gpd_connection *again)
{
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p != again && p->state == GPD_CONNECTION_QUEUED && p->full_reason[0] &&
		    p->hello->hello->wait == again->hello->hello->wait)
			gpd_admission_close_conn(admission, p, "replaced by a newer request");
	}
}

/*
 * A previous session in the slot may be about to end: a script that runs one program after another
 * must not fail for that. The request of a client in the queue is kept for longer, so that it gets
 * a slot as soon as one is free.
 */
void
gpd_admission_wait_for_slot(struct gpd_admission *admission, struct gpd_connection *connection,
			    const char *text, int64_t wait_ms)
{
	if (!connection->full_reason[0]) {
		int64_t wait_max_ms = max_wait_ms(admission, connection);

		if (wait_max_ms)
			drop_duplicate_request(admission, connection);
		if (wait_ms < wait_max_ms)
			wait_ms = wait_max_ms;
		gpd_admission_set_state(admission, connection, GPD_CONNECTION_QUEUED, wait_ms);
	} else if (connection->deadline_ms <= gp_now_ms()) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__FULL, text);
		return;
	}
	/* The reason may have changed meanwhile. */
	(void)snprintf(connection->full_reason, sizeof(connection->full_reason), "%s", text);
}

static unsigned int
session_lanes_max(const struct gpd_admission *admission)
{
	return admission->lanes_max ? (unsigned int)admission->lanes_max
				    : admission->quota->tenants.config->lanes_max;
}

struct gpd_ledger_session *
gpd_admission_acquire_slot(struct gpd_admission *admission, struct gpd_connection *connection,
			   int64_t wait_ms)
{
	const Gpupool__Hello *hello = connection->hello->hello;
	struct gpd_ledger_session *entry;
	Gpupool__Refused__Reason reason;
	char error[GPD_CONFIG_ERROR_MAX];

	if (getrandom(connection->ticket, sizeof(connection->ticket), 0) !=
	    (ssize_t)sizeof(connection->ticket)) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__WORKER,
				     "no random numbers for a ticket");
		return NULL;
	}
	gp_ticket_derive_name(connection->ticket, connection->ticket_name);
	entry = gpd_quota_open(admission->quota, admission->last_session + 1, hello, 0,
			       &connection->assignment, &reason, error);
	if (!entry && reason == GPUPOOL__REFUSED__REASON__FULL) {
		connection->limit = GPD_QUEUE_FOR_TENANT;
		gpd_admission_wait_for_slot(admission, connection, error, wait_ms);
		return NULL;
	}
	if (!entry) {
		gpd_admission_refuse(admission, connection, reason, error);
		return NULL;
	}
	connection->full_reason[0] = 0;
	connection->session = ++admission->last_session;
	entry->log_budget = connection->log_budget;
	gpd_session_owners_set(&admission->session_owners,
			       gpd_ledger_index(admission->quota->ledger, entry),
			       connection->session, hello, &connection->assignment,
			       gp_conn_peer(connection->conn));
	gpd_session_owners_set_credentials(
		&admission->session_owners, gpd_ledger_index(admission->quota->ledger, entry),
		&connection->principal, gp_conn_get_certificate_name(connection->conn),
		gp_conn_get_certificate_serial(connection->conn));
	return entry;
}

void
gpd_admission_request_open(struct gpd_admission *admission, struct gpd_connection *connection,
			   struct gpd_worker_process *worker,
			   const struct gpd_ledger_session *entry)
{
	const Gpupool__Hello *hello = connection->hello->hello;

	connection->worker = worker;
	worker->granted |= UINT32_C(1) << connection->first_device;
	connection->lanes_max = session_lanes_max(admission);
	connection->features = hello->features & FEATURES;
	if (connection->assignment.compression == GP_PACK_OFF)
		connection->features &= ~(uint64_t)GP_FEATURE_LZ4;
	if (hello->lanes && hello->lanes < connection->lanes_max)
		connection->lanes_max = hello->lanes;
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_OPENING, OPENING_MS);
	window_request(admission, connection, GPD_CHANNEL_OPEN,
		       gpd_ledger_index(admission->quota->ledger, entry), 0, hello->window_avoid,
		       hello->n_window_avoid);
}

struct gpd_worker_process *
gpd_admission_get_worker(const struct gpd_admission *admission, uint32_t group)
{
	struct gpd_worker_process *worker = admission->selected[group];

	/* The tenant's index may have been that of another tenant. */
	return worker && gpd_worker_process_serves(worker, admission->quota->ledger, group) ? worker
											    : NULL;
}

/* Returns whether the worker that the client needs is available; the first worker has reported the
 * devices. */
static bool
conn_has_worker(const struct gpd_admission *admission, const struct gpd_connection *connection)
{
	const struct gpd_worker_process *worker;

	if (connection->assignment.dedicated)
		return admission->quota->tenants.device_count > 0;
	admission->select_worker(admission->arg, connection);
	worker = gpd_admission_get_worker(admission, connection->assignment.group);
	/* One that lacks a device is about to be replaced. */
	return worker && worker->state == GPD_WORKER_SERVING &&
	       !(gpd_tenants_get_usable(&admission->quota->tenants, connection->assignment.group) &
		 ~worker->devices);
}

/* Refuses the client if the devices that it can get are sick. Returns false if it was refused. */
static bool
conn_check_health(struct gpd_admission *admission, struct gpd_connection *connection)
{
	char error[GPD_CONFIG_ERROR_MAX];

	if (gpd_tenants_check_health(&admission->quota->tenants, connection->hello->hello,
				     &connection->assignment, error) == 0)
		return true;
	gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__DEVICE, error);
	return false;
}

bool
gpd_admission_waits_for_place(const struct gpd_connection *connection)
{
	return connection->state == GPD_CONNECTION_QUEUED && connection->full_reason[0] &&
	       connection->place_order && connection->limit == GPD_QUEUE_FOR_PLACE;
}

struct gpd_waiter
gpd_admission_get_waiter(const struct gpd_connection *connection)
{
	const struct gpd_assignment *assignment = &connection->assignment;

	return (struct gpd_waiter){
		.number = connection->hello ? connection->hello->hello->wait : 0,
		.tenant = assignment->tenant,
		.limit = GPD_QUEUE_FOR_PLACE,
		.device = connection->first_device,
		.group = assignment->dedicated ? GPD_QUEUE_OWN_WORKER : assignment->group,
		.owner = assignment->dedicated ? gpd_tenant_group(assignment->tenant)
					       : assignment->group,
		.order = connection->place_order,
	};
}

/* A place has become free: from now on the client waits for its worker, unless the daemon has no
 * session slot any more. */
static bool
conn_stop_waiting_for_place(struct gpd_admission *admission, struct gpd_connection *connection)
{
	const char *full_reason = gpd_admission_get_full_reason(admission, connection, 0, 0);

	if (full_reason) {
		connection->limit = GPD_QUEUE_FOR_DAEMON;
		gpd_admission_wait_for_slot(admission, connection, full_reason, GPD_SLOT_WAIT_MS);
		return false;
	}
	connection->full_reason[0] = '\0';
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_QUEUED, GPD_QUEUED_MS);
	return true;
}

/* Returns whether there is a place for the session's worker on its device. If not, the client waits
 * for one, or is refused because it has waited for long enough. */
static bool
conn_has_place(struct gpd_admission *admission, struct gpd_connection *connection)
{
	const struct gpd_tenants *tenants = &admission->quota->tenants;
	char text[GPD_CONFIG_ERROR_MAX];
	enum gpd_places_reason reason;
	struct gpd_waiter waiter;
	enum gpd_place place;

	connection->first_device = gpd_tenants_get_first_device(tenants, connection->hello->hello,
								&connection->assignment);
	place = admission->find_place(admission->arg, connection, &reason);
	waiter = gpd_admission_get_waiter(connection);
	if (place == GPD_PLACE_READY &&
	    (gpd_admission_waits_for_place(connection) ||
	     gpd_queue_has_for_place(&admission->quota->queue, &waiter)))
		gpd_queue_note_served(&admission->quota->queue, &waiter);
	if (place == GPD_PLACE_READY)
		return !gpd_admission_waits_for_place(connection) ||
		       conn_stop_waiting_for_place(admission, connection);
	if (!connection->place_order)
		connection->place_order = ++admission->quota->queue.last_order;
	connection->limit = GPD_QUEUE_FOR_PLACE;
	gpd_tenants_format_places(tenants, connection->first_device, reason, text);
	gpd_admission_wait_for_slot(admission, connection, text,
				    place == GPD_PLACE_SOON ? PLACE_SOON_MS : GPD_SLOT_WAIT_MS);
	return false;
}

static void
conn_open_queued(struct gpd_admission *admission, struct gpd_connection *connection)
{
	const char *full_reason, *closed = get_closed_reason(admission);
	struct gpd_ledger_session *entry;
	struct gpd_worker_process *worker;

	if (closed && connection->full_reason[0]) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__SHUTTING_DOWN,
				     closed);
		return;
	}
	/* No worker starts for sick devices. */
	if (!conn_check_health(admission, connection))
		return;
	/* The tenant or the isolation may have changed while the client waited. */
	if (!conn_has_place(admission, connection) || !conn_has_worker(admission, connection) ||
	    !gpd_admission_admit(admission, connection) || !conn_has_place(admission, connection) ||
	    !conn_has_worker(admission, connection))
		return;
	if (connection->assignment.dedicated) {
		gpd_admission_open_dedicated(admission, connection);
		return;
	}
	/* Other clients may have got the slots while this one waited for something else. */
	full_reason = connection->full_reason[0]
			      ? gpd_admission_get_full_reason(admission, connection, 0, 0)
			      : NULL;
	if (full_reason) {
		connection->limit = GPD_QUEUE_FOR_DAEMON;
		gpd_admission_wait_for_slot(admission, connection, full_reason, GPD_SLOT_WAIT_MS);
		return;
	}
	entry = gpd_admission_acquire_slot(admission, connection, GPD_SLOT_WAIT_MS);
	if (!entry)
		return;
	worker = gpd_admission_get_worker(admission, connection->assignment.group);
	entry->worker = worker->pid;
	gpd_admission_request_open(admission, connection, worker, entry);
}

void
gpd_admission_retry_queued(struct gpd_admission *admission)
{
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->state == GPD_CONNECTION_QUEUED)
			conn_open_queued(admission, p);
	}
	gpd_admission_start_workers(admission);
}

int
gpd_admission_sessions_max(const struct gpd_admission *admission)
{
	return admission->sessions_max ? admission->sessions_max
				       : (int)admission->quota->tenants.config->sessions_max;
}

/* A client that waits for a limit of its tenant or a device does not occupy a slot. */
static bool
conn_has_slot(const struct gpd_connection *connection)
{
	return connection->state >= GPD_CONNECTION_QUEUED &&
	       connection->state <= GPD_CONNECTION_RUNNING && !connection->full_reason[0];
}

int
gpd_admission_count_sessions(const struct gpd_admission *admission)
{
	int count = 0;

	for (const struct gpd_connection *p = admission->connection_list; p; p = p->next)
		count += conn_has_slot(p);
	return count;
}

static unsigned int
sessions_per_address_max(const struct gpd_admission *admission,
			 const struct gpd_connection *connection)
{
	uint32_t configured = admission->quota->tenants.config->sessions_per_address;

	if (configured)
		return configured;
	if (gp_conn_caps(connection->conn) & GP_CONN_CAP_LOCAL)
		return UINT32_MAX;
	/* Half of the slots, so that some are left for other addresses. */
	return (unsigned int)(gpd_admission_sessions_max(admission) + 1) / 2;
}

const char *
gpd_admission_get_full_reason(const struct gpd_admission *admission,
			      const struct gpd_connection *connection, int more,
			      int more_of_address)
{
	int count = more_of_address;
	int left = gpd_admission_sessions_max(admission) - more -
		   gpd_admission_count_sessions(admission);
	uint64_t number = connection->hello->hello->wait;

	if (left <= 0)
		return "no free session slot (--max-sessions)";
	if ((unsigned int)left <=
	    gpd_queue_count_ahead_for_daemon(&admission->quota->queue, number, gp_now_ms()))
		return "the free session slots are reserved for queued clients";
	for (const struct gpd_connection *p = admission->connection_list; p; p = p->next)
		count += p->client_address == connection->client_address && conn_has_slot(p);
	if (count >= 0 && (unsigned int)count >= sessions_per_address_max(admission, connection))
		return "too many sessions from this address (sessions-per-address)";
	return NULL;
}

bool
gpd_admission_admit(struct gpd_admission *admission, struct gpd_connection *connection)
{
	struct gpd_ledger *ledger = admission->quota->ledger;
	char error[GPD_CONFIG_ERROR_MAX];
	const char *tenant;

	if (gpd_tenants_admit(&admission->quota->tenants, connection->hello->hello,
			      connection->principal.tenant, gp_conn_peer(connection->conn),
			      &connection->assignment, error)) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__POLICY,
				     error);
		return false;
	}
	tenant = ledger->tenants[connection->assignment.tenant].name;
	connection->log_budget =
		gpd_log_budget_get_for_sessions(tenant, connection->client_address->name);
	return gpd_admission_check_quarantine(admission, connection);
}

void
gpd_admission_handle_hello(struct gpd_admission *admission, struct gpd_connection *connection,
			   Gpupool__ControlMessage *message)
{
	const Gpupool__Hello *hello = message->hello;
	char host[NAME_MAX_SIZE], program[NAME_MAX_SIZE];
	const char *wrong, *full_reason;

	connection->hello = message;
	gp_printable_name(host, sizeof(host), hello->host);
	gp_printable_name(program, sizeof(program), hello->program);
	snprintf(connection->name, sizeof(connection->name), "%s %u %s", host, hello->pid, program);
	/* A client without valid credentials gets no other information. */
	if (!gpd_admission_authenticate(admission, connection))
		return;
	gp_conn_set_message_max(connection->conn, GP_CONTROL_MAX);
	wrong = get_closed_reason(admission);
	full_reason = gpd_admission_get_full_reason(admission, connection, 0, 0);
	if (hello->look) {
		gpd_admission_probe(admission, connection, wrong ? wrong : full_reason);
		return;
	}
	if (wrong) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__SHUTTING_DOWN,
				     wrong);
		return;
	}
	if (full_reason && !hello->wait) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__FULL,
				     full_reason);
		return;
	}
	if (!gpd_admission_admit(admission, connection))
		return;
	if (full_reason)
		connection->limit = GPD_QUEUE_FOR_DAEMON;
	if (full_reason && max_wait_ms(admission, connection)) {
		gpd_admission_wait_for_slot(admission, connection, full_reason, 0);
		return;
	}
	if (full_reason) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__FULL,
				     full_reason);
		return;
	}
	if (hello->resume_ticket.len) {
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__NO_SESSION,
				     "the session to resume has ended");
		return;
	}
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_QUEUED, GPD_QUEUED_MS);
	conn_open_queued(admission, connection);
	gpd_admission_start_workers(admission);
}

void
gpd_admission_handle_window_request(struct gpd_admission *admission,
				    struct gpd_connection *connection,
				    const Gpupool__WindowRequest *request)
{
	const char *wrong = NULL;

	if (connection->state != GPD_CONNECTION_WELCOMED)
		wrong = "unexpected WindowRequest";
	else if (++connection->window_requests > WINDOWS_MAX)
		wrong = "too many WindowRequests";
	if (wrong) {
		gpd_admission_log_session(connection, GPD_LOG_WARNING, wrong);
		gpd_control_reply_session_error(connection, CUDA_ERROR_NOT_PERMITTED, wrong);
		gpd_admission_close_conn(admission, connection, wrong);
		return;
	}
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_MOVING, OPENING_MS);
	window_request(admission, connection, GPD_CHANNEL_MOVE_WINDOW, 0, request->size,
		       request->avoid, request->n_avoid);
}

/* The slot of a dedicated worker's session becomes free when the process has exited. A session of
 * another worker is not this one's to close. */
static void
session_release(struct gpd_admission *admission, const struct gpd_worker_process *worker,
		uint64_t session)
{
	const struct gpd_ledger_session *entry = gpd_ledger_find(admission->quota->ledger, session);

	if (entry && entry->worker == worker->pid && !gpd_worker_process_is_dedicated(worker))
		gpd_quota_close(admission->quota, session);
}

void
gpd_admission_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
		     const struct gpd_channel_message *message)
{
	struct gpd_connection *connection =
		gpd_admission_find_session(admission, worker, message->header.session);
	const struct gpd_channel_opened *opened = message->data;
	struct gp_bytes known;
	bool moving;

	/* Without a connection the client has disconnected, and the worker has been notified. */
	if (!connection || message->size < sizeof(*opened) ||
	    message->size < sizeof(*opened) + opened->device_count * sizeof(uint64_t))
		return;
	known.data = &opened->memory_free[opened->device_count];
	known.size = message->size - sizeof(*opened) - opened->device_count * sizeof(uint64_t);
	moving = connection->state == GPD_CONNECTION_MOVING;
	if (!moving && connection->state != GPD_CONNECTION_OPENING)
		return;
	if (!moving && opened->window.size == 0) {
		session_release(admission, worker, connection->session);
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__FULL,
				     "no free device address range for a session");
		return;
	}
	/* If no other window was found, the client stays in its current one, and may request
	 * again. */
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_WELCOMED, LANE_MS);
	if (moving)
		gpd_control_reply_window(connection, worker->facts, opened);
	else if (gpd_control_reply_welcome(admission->quota, connection, worker->facts, opened,
					   known))
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__WORKER,
				     "the daemon has no memory for another session");
}

void
gpd_admission_closed(struct gpd_admission *admission, struct gpd_worker_process *worker,
		     const struct gpd_channel_message *message)
{
	struct gpd_connection *connection =
		gpd_admission_find_session(admission, worker, message->header.session);
	char text[256], line[300];

	session_release(admission, worker, message->header.session);
	gpd_admission_retry_queued(admission);
	if (!connection)
		return;
	gpd_channel_text(message, text, sizeof(text));
	(void)snprintf(line, sizeof(line), "not opened: %s", text);
	if (connection->state == GPD_CONNECTION_OPENING)
		gpd_admission_log_session(connection, GPD_LOG_WARNING, line);
	connection->worker = NULL;
	if (message->header.result)
		gpd_control_reply_session_error(connection, message->header.result, text);
	else
		gpd_control_reply_bye(connection, text);
	gpd_admission_close_conn(admission, connection, text);
}

/* Returns the text for a client of this tenant. */
static const char *
select_text(const struct gpd_channel_lost *lost, uint32_t tenant)
{
	for (uint32_t i = 0; i < lost->tenant_count && i < GPD_LOST_TENANTS; i++)
		if (lost->tenants[i].tenant == tenant)
			return lost->tenants[i].text;
	return lost->others;
}

void
gpd_admission_worker_exited(struct gpd_admission *admission, struct gpd_worker_process *worker,
			    int result, const char *text)
{
	struct gpd_channel_lost lost = { .tenant_count = 0 };

	(void)snprintf(lost.log, sizeof(lost.log), "%s", text);
	(void)snprintf(lost.others, sizeof(lost.others), "%s", text);
	gpd_admission_worker_lost(admission, worker, result, &lost);
}

void
gpd_admission_worker_lost(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  int result, const struct gpd_channel_lost *lost)
{
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		bool own_worker = p->own_worker == worker;

		if (own_worker &&
		    (p->state == GPD_CONNECTION_STARTING || p->state == GPD_CONNECTION_OPENING)) {
			p->worker = NULL;
			gpd_admission_refuse(admission, p, GPUPOOL__REFUSED__REASON__WORKER,
					     select_text(lost, p->assignment.tenant));
			continue;
		}
		if (own_worker)
			p->own_worker = NULL;
		if (p->worker != worker)
			continue;
		p->worker = NULL;
		if (p->state == GPD_CONNECTION_OPENING) {
			/* The client does not know of a session yet, so the next worker can open
			 * it. */
			gpd_admission_set_state(admission, p, GPD_CONNECTION_QUEUED, GPD_QUEUED_MS);
			continue;
		}
		gpd_control_reply_session_error(p, result, select_text(lost, p->assignment.tenant));
		gpd_admission_close_conn(admission, p, lost->log);
	}
}

void
gpd_admission_set_hanging(struct gpd_admission *admission, const struct gpd_worker_process *worker,
			  bool hangs)
{
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->worker == worker)
			atomic_store(&p->worker_is_hung, hangs);
	}
}

void
gpd_admission_report_ended(const struct gpd_admission *admission,
			   const struct gpd_worker_process *worker, const char *reason)
{
	struct gpd_ledger *ledger = admission->quota->ledger;
	char what[GPD_LEDGER_SUMMARY_MAX];

	for (const struct gpd_ledger_session *entry = NULL;
	     (entry = gpd_ledger_next(ledger, entry, worker->pid));) {
		uint64_t id = atomic_load(&entry->id);
		const struct gpd_session_owner *client;
		char host[NAME_MAX_SIZE], program[NAME_MAX_SIZE];

		if (atomic_load(&entry->logged) != GPD_LOGGED_OPEN)
			continue;
		client = gpd_session_owner(&admission->session_owners,
					   gpd_ledger_index(ledger, entry), id);
		gpd_ledger_summary(entry, what, sizeof(what));
		gp_printable_name(host, sizeof(host), client->host);
		gp_printable_name(program, sizeof(program), client->program);
		gpd_log_budget_log(entry->log_budget, GPD_LOG_WARNING,
				   "session %llu (%s %u %s): closed: %s; %s",
				   (unsigned long long)id, host, client->pid, program, reason,
				   what);
	}
}
