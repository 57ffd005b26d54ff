/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admission/admission.h"

#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/admission/admission_internal.h"
#include "server/supervisor/auth/control_reply.h"

#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Interval in which unused addresses are freed and dropped log lines are reported. */
#define EXPIRE_MS 30000

int
gpd_admission_init(struct gpd_admission *admission, struct gpd_quota *quota, int sessions_max,
		   int lanes_max)
{
	*admission = (struct gpd_admission){
		.quota = quota,
		.sessions_max = sessions_max,
		.lanes_max = lanes_max,
	};
	return gpd_session_owners_init(&admission->session_owners);
}

void
gpd_admission_add(struct gpd_admission *admission, struct gpd_connection *connection)
{
	connection->deadline_ms = gp_now_ms() + GPD_HANDSHAKE_MS;
	LL_PREPEND(admission->connection_list, connection);
	admission->handshakes++;
	connection->client_address->handshakes++;
}

void
gpd_admission_set_state(struct gpd_admission *admission, struct gpd_connection *connection,
			enum gpd_connection_state state, int64_t wait_ms)
{
	bool was_outside = connection->state <= GPD_CONNECTION_REFUSED;
	int64_t deadline_ms = wait_ms == NO_DEADLINE ? INT64_MAX : gp_now_ms() + wait_ms;

	if (!gpd_connection_set_state(connection, state, deadline_ms) || !was_outside ||
	    state <= GPD_CONNECTION_REFUSED)
		return;
	admission->handshakes--;
	connection->client_address->handshakes--;
}

/* A worker that does not read its channel is killed; the end of one that has exited is handled by
 * its reaping. */
void
gpd_admission_send(struct gpd_worker_process *worker, const struct gpd_channel_header *header,
		   const void *data, size_t size, int fd)
{
	int r = gpd_channel_post(&worker->channel, header, data, size, fd);

	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return;
	gpd_error("worker %d: channel full; killed", (int)worker->pid);
	(void)kill(worker->pid, SIGKILL);
}

void
gpd_admission_send_session(struct gpd_worker_process *worker, enum gpd_channel_type type,
			   uint64_t session, const void *data, size_t size)
{
	struct gpd_channel_header header = { .type = type, .session = session };

	gpd_admission_send(worker, &header, data, size, -1);
}

static void
session_end(struct gpd_admission *admission, struct gpd_connection *connection, const char *reason)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_CLOSE,
					     .result = connection->evicted,
					     .session = connection->session };

	if (connection->worker)
		gpd_admission_send(connection->worker, &header, reason, strlen(reason), -1);
	gpd_admission_abandon_worker(admission, connection);
	connection->worker = connection->own_worker = NULL;
}

/* Its receiver thread notices the shutdown and posts the last event. */
void
gpd_admission_close_conn(struct gpd_admission *admission, struct gpd_connection *connection,
			 const char *reason)
{
	if (connection->state == GPD_CONNECTION_CLOSING)
		return;
	session_end(admission, connection, reason);
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_CLOSING, NO_DEADLINE);
	gp_conn_shutdown(connection->conn);
}

void
gpd_admission_log_session(const struct gpd_connection *connection, enum gpd_log_level level,
			  const char *text)
{
	gpd_log_budget_log(connection->log_budget, level, "session %llu (%s): %s",
			   (unsigned long long)connection->session, connection->name, text);
}

/* Adds the position in the queue for a client that will send another request. */
static const char *
append_queue_position(struct gpd_admission *admission, const struct gpd_connection *connection,
		      const char *text, char buffer[GPD_CONFIG_ERROR_MAX])
{
	struct gpd_waiter waiter = gpd_admission_get_waiter(connection);
	unsigned int position;

	waiter.limit = connection->limit;
	if (!waiter.number)
		return text;
	position = gpd_queue_add(&admission->quota->queue, &waiter, gp_now_ms());
	if (position)
		(void)snprintf(buffer, GPD_CONFIG_ERROR_MAX, "%.*s; position %u in the queue",
			       GPD_CONFIG_ERROR_MAX - 40, text, position);
	else
		(void)snprintf(buffer, GPD_CONFIG_ERROR_MAX,
			       "%.*s; not queued: the queue is full (%d per tenant, %d in all)",
			       GPD_CONFIG_ERROR_MAX - 80, text, GPD_QUEUE_TENANT_MAX,
			       GPD_QUEUE_MAX);
	return buffer;
}

void
gpd_admission_refuse(struct gpd_admission *admission, struct gpd_connection *connection,
		     Gpupool__Refused__Reason reason, const char *text)
{
	char buffer[GPD_CONFIG_ERROR_MAX];

	if (reason == GPUPOOL__REFUSED__REASON__FULL)
		text = append_queue_position(admission, connection, text, buffer);
	gpd_client_address_log(connection->client_address, GPD_LOG_WARNING, "%s (%s): refused: %s",
			       gp_conn_peer(connection->conn), connection->name, text);
	gpd_control_reply_refused(connection, reason, text);
	gpd_admission_close_conn(admission, connection, text);
}

struct gpd_connection *
gpd_admission_find_session(const struct gpd_admission *admission,
			   const struct gpd_worker_process *worker, uint64_t id)
{
	struct gpd_connection *connection = admission->connection_list;

	while (connection && (connection->worker != worker || connection->session != id))
		connection = connection->next;
	return connection;
}

/* The client sends no more requests, so a slot reserved for it becomes available to others. */
static void
queue_remove(struct gpd_admission *admission, uint64_t number)
{
	gpd_queue_remove(&admission->quota->queue, number);
	gpd_admission_retry_queued(admission);
}

/* No slot became free within the client's waiting time. */
static void
conn_refuse_slot(struct gpd_admission *admission, struct gpd_connection *connection)
{
	const Gpupool__Hello *hello = connection->hello->hello;
	bool last = gpd_queue_has(&admission->quota->queue, hello->wait) && hello->patience_ms &&
		    hello->patience_ms < GPD_WAIT_MAX_MS;

	gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__FULL,
			     connection->full_reason);
	if (last)
		queue_remove(admission, hello->wait);
}

static void
conn_handle_closed(struct gpd_admission *admission, struct gpd_connection *connection,
		   const struct gpd_connection_event *event)
{
	bool waited = connection->state == GPD_CONNECTION_QUEUED && connection->full_reason[0];
	char text[sizeof(event->text) + 24];

	(void)snprintf(text, sizeof(text), "control connection: %s", event->text);
	if (event->refused)
		admission->authentication.refusals[GPD_AUTH_HANDSHAKE]++;
	if (connection->state == GPD_CONNECTION_HANDSHAKE)
		gpd_client_address_count_wasted(connection->client_address, gp_now_ms());
	if (event->refused)
		gpd_client_address_log(connection->client_address, GPD_LOG_WARNING,
				       "%s: refused: %s", gp_conn_peer(connection->conn),
				       event->text);
	else if (connection->state == GPD_CONNECTION_HANDSHAKE && !event->ended)
		gpd_client_address_log(connection->client_address, GPD_LOG_INFO,
				       "%s: no session: %s", gp_conn_peer(connection->conn),
				       event->text);
	else if (connection->state == GPD_CONNECTION_HANDSHAKE)
		gpd_debug("%s: no session: %s", gp_conn_peer(connection->conn), event->text);
	else if (connection->state != GPD_CONNECTION_REFUSED &&
		 connection->state != GPD_CONNECTION_CLOSING && !event->ended)
		gpd_admission_log_session(connection, GPD_LOG_INFO, text);
	session_end(admission, connection, event->text);
	gpd_admission_set_state(admission, connection, GPD_CONNECTION_CLOSING, NO_DEADLINE);
	LL_DELETE(admission->connection_list, connection);
	if (waited)
		queue_remove(admission, connection->hello->hello->wait);
	gpd_connection_destroy(connection);
}

void
gpd_admission_handle_events(struct gpd_admission *admission)
{
	struct gpd_connection_event *next;

	/* Events posted after this call are handled in the next iteration. */
	for (struct gpd_connection_event *event = gpd_connection_pop_events(); event;
	     event = next) {
		struct gpd_connection *connection = event->peer;

		next = event->next;
		switch (event->type) {
		case GPD_CONNECTION_LANE:
			gpd_admission_handle_lane(admission, connection, &event->preamble);
			break;
		case GPD_CONNECTION_CLOSED:
			conn_handle_closed(admission, connection, event);
			break;
		case GPD_CONNECTION_MESSAGE:
			atomic_fetch_sub(&connection->queued, 1);
			if (connection->state == GPD_CONNECTION_CLOSING) {
				gp_control_free(event->message);
			} else if (event->message->body_case ==
				   GPUPOOL__CONTROL_MESSAGE__BODY_HELLO) {
				gpd_admission_handle_hello(admission, connection, event->message);
			} else {
				gpd_admission_handle_window_request(admission, connection,
								    event->message->window_request);
				gp_control_free(event->message);
			}
			break;
		}
		free(event);
	}
}

static void
conn_deadline_expired(struct gpd_admission *admission, struct gpd_connection *connection)
{
	static const char no_lane[] = "no lane within the timeout";
	const char *peer_name = gp_conn_peer(connection->conn);

	switch (connection->state) {
	case GPD_CONNECTION_QUEUED:
		if (connection->full_reason[0]) {
			conn_refuse_slot(admission, connection);
			break;
		}
		/* fall through */
	case GPD_CONNECTION_OPENING:
		gpd_admission_refuse(admission, connection, GPUPOOL__REFUSED__REASON__WORKER,
				     "the GPUs cannot be used at the moment");
		break;
	case GPD_CONNECTION_STARTING:
		gpd_admission_refuse(admission, connection,
				     connection->own_worker ? GPUPOOL__REFUSED__REASON__WORKER
							    : GPUPOOL__REFUSED__REASON__FULL,
				     connection->own_worker
					     ? "dedicated worker start timed out"
					     : "dedicated worker start queue timed out");
		break;
	case GPD_CONNECTION_WELCOMED:
	case GPD_CONNECTION_MOVING:
		gpd_admission_log_session(connection, GPD_LOG_WARNING, no_lane);
		gpd_control_reply_session_error(connection, CUDA_ERROR_SYSTEM_NOT_READY, no_lane);
		gpd_admission_close_conn(admission, connection, no_lane);
		break;
	case GPD_CONNECTION_REFUSED:
		gpd_admission_send_refusal(admission, connection);
		break;
	default:
		gpd_client_address_log(connection->client_address, GPD_LOG_WARNING,
				       "%s: no session: no Hello within the timeout", peer_name);
		gpd_admission_close_conn(admission, connection, "no Hello within the timeout");
		break;
	}
}

void
gpd_admission_check_deadlines(struct gpd_admission *admission)
{
	int64_t now_ms = gp_now_ms();

	if (admission->recheck_ms <= now_ms)
		gpd_admission_check_credentials(admission);
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->deadline_ms <= now_ms)
			conn_deadline_expired(admission, p);
	}
	gpd_admission_poll_early(admission);
	gpd_admission_start_waiting(admission);
	if (admission->expire_ms > now_ms)
		return;
	admission->expire_ms = now_ms + EXPIRE_MS;
	gpd_client_address_expire(now_ms);
	gpd_log_budget_check(now_ms);
}

void
gpd_admission_reload(struct gpd_admission *admission, struct gpd_config *config,
		     struct gpd_reload_report *reloaded)
{
	struct gpd_quota *quota = admission->quota;

	gpd_tenants_set_config(&quota->tenants, config);
	gpd_authentication_reload(&admission->authentication, config, gp_now_ms(), reloaded);
	gpd_admission_check_certificates(admission);
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		bool has_line = p->worker || p->state == GPD_CONNECTION_STARTING;
		struct gpd_ledger_session *entry =
			has_line ? gpd_ledger_find(quota->ledger, p->session) : NULL;

		/* A client that still waits may belong to another tenant now, or to none. */
		if (p->state == GPD_CONNECTION_QUEUED)
			(void)gpd_admission_admit(admission, p);
		/* Sessions of a tenant that is no longer configured keep their limits. */
		if (entry && quota->tenants.config_indexes[p->assignment.tenant] >= 0)
			gpd_quota_apply(quota, p->hello->hello, &p->assignment, entry);
	}
	gpd_admission_quotas_changed(admission);
	/* There may be more slots now, and waiting clients may have another isolation. */
	gpd_admission_retry_queued(admission);
}

struct gpd_connection *
gpd_admission_find(const struct gpd_admission *admission, uint64_t session)
{
	struct gpd_connection *connection = admission->connection_list;

	while (connection &&
	       ((!connection->worker && connection->state != GPD_CONNECTION_STARTING) ||
		connection->session != session))
		connection = connection->next;
	return connection;
}

void
gpd_admission_evict(struct gpd_admission *admission, struct gpd_connection *connection,
		    Gpupool__Refused__Reason reason, const char *text)
{
	if (!connection->worker) {
		gpd_admission_refuse(admission, connection, reason, text);
		return;
	}
	gpd_info("session %llu (%s): %s", (unsigned long long)connection->session, connection->name,
		 text);
	gpd_control_reply_session_error(connection, CUDA_ERROR_MPS_CLIENT_TERMINATED, text);
	connection->evicted = true;
	gpd_admission_close_conn(admission, connection, text);
}

void
gpd_admission_terminate(struct gpd_admission *admission, uint64_t session)
{
	struct gpd_connection *connection = gpd_admission_find(admission, session);

	if (connection)
		gpd_admission_evict(admission, connection, GPUPOOL__REFUSED__REASON__POLICY,
				    "terminated by the administrator");
}

void
gpd_admission_quotas_changed(struct gpd_admission *admission)
{
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->worker)
			gpd_admission_send_session(p->worker, GPD_CHANNEL_SMS_CHANGED, p->session,
						   NULL, 0);
	}
}

bool
gpd_admission_is_empty(const struct gpd_admission *admission)
{
	return gpd_admission_count_sessions(admission) == 0 &&
	       !gpd_ledger_next(admission->quota->ledger, NULL, GPD_LEDGER_ANY_WORKER);
}

void
gpd_admission_stop(struct gpd_admission *admission)
{
	admission->stopping = true;
	gpd_admission_drop_waiting(admission);
	for (struct gpd_connection *p = admission->connection_list; p; p = p->next) {
		if (p->state == GPD_CONNECTION_CLOSING)
			continue;
		if (p->state > GPD_CONNECTION_REFUSED)
			gpd_control_reply_bye(p, "the daemon is stopping");
		p->worker = NULL; /* the worker is stopped as a whole */
		gpd_admission_close_conn(admission, p, "the daemon is stopping");
	}
}

void
gpd_admission_fini(struct gpd_admission *admission)
{
	struct gpd_connection_event *next;

	for (struct gpd_connection *p = admission->connection_list; p; p = p->next)
		gp_conn_shutdown(p->conn);
	while (admission->connection_list) {
		struct gpd_connection *connection = admission->connection_list;

		admission->connection_list = connection->next;
		gpd_connection_destroy(connection);
	}
	for (struct gpd_connection_event *event = gpd_connection_pop_events(); event;
	     event = next) {
		next = event->next;
		gp_control_free(event->message);
		free(event);
	}
	gpd_admission_drop_waiting(admission);
	gpd_admission_drop_early(admission);
	gpd_session_owners_fini(&admission->session_owners);
	gpd_client_address_expire(INT64_MAX);
	gpd_log_budget_check(gp_now_ms());
}
