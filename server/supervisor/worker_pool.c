/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/worker_pool.h"

#include "base/clock.h"
#include "server/common/base/client_address_name.h"
#include "server/common/base/log.h"
#include "server/supervisor/worker_pool_internal.h"

#include <cuda.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#define WORKER_LOST_MS 1500
/* Maximum time from the end of a worker's last session, or of its channel, to its exit: the driver
 * destroys contexts and unregisters host memory. */
#define WORKER_EXIT_MS 30000
/* Successive workers of a group that end before they are ready. */
#define EARLY_EXITS_MAX 5
/* Limit of messages per worker and iteration, so that the others get their turn. */
#define MESSAGES_MAX 256
/* An iteration with this delay means that this process or the machine did not run. */
#define LATE_MS 2000
/* Time between two updates of the memory limits of control groups. */
#define LIMIT_EVERY_MS 1000

/* If it has got a session since it sent the report, that session continues, and the worker reports
 * again when it has none. */
static void
worker_worn(struct gpd_worker_pool *c, struct gpd_worker_process *process,
	    const struct gpd_channel_message *message)
{
	char reason[128];

	if (process != c->admission->selected[process->group] ||
	    gpd_ledger_next(c->quota->ledger, NULL, process->pid) || c->stopping)
		return;
	gpd_info("worker %d: %s; replacing the worker", (int)process->pid,
		 gpd_channel_text(message, reason, sizeof(reason)));
	gpd_worker_pool_retire_worker(c, process);
}

static void
process_destroy(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	gpd_worker_cgroup_destroy(&c->cgroups, process->pid);
	if (gpd_worker_process_is_dedicated(process))
		gpd_client_address_put(process->client_address);
	gpd_worker_process_destroy(process);
}

/* A worker reports this once, before it has run code of a client. Returns whether it now has
 * `facts`. */
static bool
facts_store(struct gpd_worker_process *process, const struct gpd_channel_message *message)
{
	Gpupool__Welcome *facts;

	if (process->facts)
		return false;
	facts = gpupool__welcome__unpack(NULL, message->size, message->data);
	if (facts && facts->limits && facts->n_devices <= GPD_LEDGER_DEVICES) {
		process->facts = facts;
		return true;
	}
	if (facts)
		gpupool__welcome__free_unpacked(facts, NULL);
	gpd_error("worker %d: its report about the driver is not valid; killed", (int)process->pid);
	(void)kill(process->pid, SIGKILL);
	return false;
}

static void
worker_ready(struct gpd_worker_pool *c, struct gpd_worker_process *process,
	     const struct gpd_channel_message *message)
{
	bool own = gpd_worker_process_is_dedicated(process);

	if (!facts_store(process, message) || process->state != GPD_WORKER_STARTING)
		return;
	process->deadline_ms = INT64_MAX;
	/* Those after the first log at debug level: a client can start any number of them, and must
	 * not cause more lines than its log budget allows. */
	for (size_t i = 0; i < process->facts->n_devices; i++) {
		if (!(process->devices >> i & 1))
			continue;
		gpd_log(c->served ? GPD_LOG_DEBUG : GPD_LOG_INFO,
			"worker %d: device %d is %s, %llu MiB", (int)process->pid,
			process->facts->devices[i]->ordinal, process->facts->devices[i]->name,
			(unsigned long long)(process->facts->devices[i]->total_memory >> 20));
	}
	gpd_tenants_set_devices(&c->quota->tenants, process->facts);
	/* The first worker is started before their number is known. */
	if (c->quota->tenants.device_count < GPD_LEDGER_DEVICES)
		process->devices &= (UINT32_C(1) << c->quota->tenants.device_count) - 1;
	process->contexts &= process->devices;
	c->served = true;
	if (process->spare) {
		if (!gpd_worker_process_set_state(process, GPD_WORKER_SPARE))
			gpd_worker_pool_retire_worker(c, process);
		gpd_admission_retry_queued(c->admission);
		return;
	}
	if (own) {
		if (c->stopping || !gpd_admission_dedicated_ready(c->admission, process))
			gpd_worker_pool_retire_worker(c, process);
		gpd_admission_retry_queued(c->admission);
		return;
	}
	if (!gpd_worker_process_set_state(process, GPD_WORKER_SERVING))
		return;
	gpd_admission_retry_queued(c->admission);
}

/* Ends a worker with a context on a sick device, with its sessions: only another process is free of
 * what the driver does with the context. */
static void
worker_end_sick(struct gpd_worker_pool *c, struct gpd_worker_process *process, int device,
		const char *reason)
{
	c->admission->workers_lost += process->facts != NULL;
	snprintf(process->reason, sizeof(process->reason), "device %d is sick: %s", device, reason);
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_ENDING, 0);
	gpd_admission_worker_exited(c->admission, process, CUDA_ERROR_DEVICE_UNAVAILABLE,
				    process->reason);
	(void)kill(process->pid, SIGKILL);
}

/* Other workers may not create a context on the device (ledger->sick); gpd_worker_pool_select_all()
 * retires them, because they have the device open. */
void
gpd_worker_pool_end_device(struct gpd_worker_pool *c, int device)
{
	const char *reason = c->quota->tenants.devices[device].health.reason;

	atomic_store(&c->quota->ledger->sick[device], 1);
	gpd_error("device %d is sick: %s; its sessions end, and no new ones use it until "
		  "gpupoolctl device enable %d",
		  device, reason, device);
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->contexts >> device & 1 && process->state != GPD_WORKER_ENDING)
			worker_end_sick(c, process, device, reason);
	}
	/* The next workers do not use the device, so that none waits because of it. */
	for (int i = 0; i < GPD_GROUPS; i++)
		c->groups[i].start_ms = 0;
	gpd_admission_retry_queued(c->admission);
}

/* A worker has failed to start. Returns whether it was because of one device, of which failures are
 * counted. */
static bool
count_context_failure(struct gpd_worker_pool *c, const struct gpd_worker_process *process,
		      int result)
{
	int device = ffs((int)process->creating) - 1;

	if (device < 0)
		return false;
	if (process->facts) {
		(void)gpd_device_health_suspect(&c->quota->tenants.devices[device].health, result);
		return false;
	}
	if (gpd_device_health_context_failed(&c->quota->tenants.devices[device].health, device,
					     result))
		gpd_worker_pool_end_device(c, device);
	return true;
}

static void
worker_follow_context(struct gpd_worker_pool *c, struct gpd_worker_process *process,
		      const struct gpd_channel_message *message)
{
	const struct gpd_channel_context *context = message->data;
	int device = gpd_worker_process_follow_context(process, message);
	struct gpd_device_health *health;

	if (device < 0)
		return;
	health = &c->quota->tenants.devices[device].health;
	/* Reports of a worker that has run sessions are not trusted. */
	if (process->facts && context->step == GPD_CONTEXT_FAILED)
		(void)gpd_device_health_suspect(health, context->result);
	if (process->facts || context->step != GPD_CONTEXT_CREATED)
		return;
	gpd_device_health_context_created(health);
	gpd_tenants_measure_context(&c->quota->tenants, device, process->context_bytes[device]);
}

/* Before the first worker is ready no client waits, so that the next one starts at once, and a sick
 * device is found soon. Returns false if the daemon cannot start. */
static bool
first_worker_restart(struct gpd_worker_pool *c, const struct gpd_worker_process *process,
		     int result)
{
	return result != CUDA_ERROR_OUT_OF_MEMORY && result != CUDA_ERROR_DEVICE_UNAVAILABLE &&
	       count_context_failure(c, process, result);
}

static void
worker_failed(struct gpd_worker_pool *c, struct gpd_worker_process *process,
	      const struct gpd_channel_message *message)
{
	char text[1024];

	/* Only a worker that starts can fail to start. */
	if (process->facts || process->state == GPD_WORKER_ENDING)
		return;
	gpd_channel_text(message, text, sizeof(text));
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_ENDING, gp_now_ms() + BACKOFF_MS);
	process->deadline_ms = gp_now_ms() + WORKER_EXIT_MS;
	if (!c->served && first_worker_restart(c, process, message->header.result)) {
		gpd_error("worker %d cannot start: %s", (int)process->pid, text);
		return;
	}
	if (c->served)
		(void)count_context_failure(c, process, message->header.result);
	if (!c->served) {
		fprintf(stderr, "gpupoold: %s\n", text);
		c->start_failed = true;
		return;
	}
	gpd_error("worker %d cannot start: %s", (int)process->pid, text);
	gpd_admission_worker_exited(c->admission, process, CUDA_ERROR_SYSTEM_NOT_READY, text);
}

/* Lines about a dedicated worker use its session's log budget, since a client can start any number
 * of them. */
static void
worker_report_error(const struct gpd_worker_pool *c, const struct gpd_worker_process *process,
		    const char *text)
{
	const struct gpd_ledger_session *entry =
		gpd_worker_process_is_dedicated(process)
			? gpd_ledger_next(c->quota->ledger, NULL, process->pid)
			: NULL;

	if (entry)
		gpd_log_budget_log(entry->log_budget, GPD_LOG_ERROR, "worker %d %s",
				   (int)process->pid, text);
	else
		gpd_error("worker %d %s", (int)process->pid, text);
}

static void
worker_lost(struct gpd_worker_pool *c, struct gpd_worker_process *process,
	    const struct gpd_channel_message *message)
{
	struct gpd_channel_lost lost = { .others = "its context was lost" };
	char text[1024];

	if (process->state >= GPD_WORKER_LOST)
		return;
	if (message->size == sizeof(lost))
		memcpy(&lost, message->data, sizeof(lost));
	lost.log[sizeof(lost.log) - 1] = lost.others[sizeof(lost.others) - 1] = '\0';
	for (int i = 0; i < GPD_LOST_TENANTS; i++)
		lost.tenants[i].text[sizeof(lost.tenants[i].text) - 1] = '\0';
	(void)snprintf(text, sizeof(text), "has lost its GPU contexts: %.990s", lost.log);
	worker_report_error(c, process, text);
	c->admission->workers_lost++;
	gpd_admission_report_fault(c->admission, process, message->header.result, &lost);
	snprintf(process->reason, sizeof(process->reason), "its context was lost");
	process->deadline_ms = gp_now_ms() + WORKER_LOST_MS;
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_LOST, 0);
	gpd_admission_worker_lost(c->admission, process, message->header.result, &lost);
}

/* Depending on the configuration, either only reports the hang, or kills the worker with its
 * sessions so that another one starts. One without sessions is killed. */
static void
worker_is_hung(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	bool idle = !gpd_ledger_next(c->quota->ledger, NULL, process->pid);
	bool restart = c->quota->tenants.config->on_hang == GPD_CONFIG_ON_HANG_RESTART;

	gpd_error("worker %d: no heartbeat for %d s: stopped, or hung in the driver; %s",
		  (int)process->pid, GPD_HEARTBEAT_DUE_MS / 1000,
		  idle      ? "it has no session and is killed"
		  : restart ? "it is killed, and another one starts (on-hang = restart)"
			    : "its sessions wait (on-hang = report)");
	gpd_admission_set_hanging(c->admission, process, true);
	if (!restart && !idle)
		return;
	c->admission->workers_lost++;
	snprintf(process->reason, sizeof(process->reason),
		 "its worker did not answer and was killed%s", idle ? "" : " (on-hang = restart)");
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_ENDING, 0);
	gpd_admission_worker_exited(c->admission, process, CUDA_ERROR_DEVICE_UNAVAILABLE,
				    process->reason);
	(void)kill(process->pid, SIGKILL);
}

static void
worker_answers(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	int64_t silent_ms = gpd_heartbeat_answered(&process->heartbeat, gp_now_ms());

	if (!silent_ms)
		return;
	gpd_warning("worker %d answers again, after %lld s", (int)process->pid,
		    (long long)silent_ms / 1000);
	gpd_admission_set_hanging(c->admission, process, false);
}

/* A worker has separate deadlines before it is ready and when it ends. */
static bool
has_heartbeat(const struct gpd_worker_process *process)
{
	return process->state != GPD_WORKER_STARTING && process->state < GPD_WORKER_LOST &&
	       !process->channel_closed;
}

static void
check_heartbeats(struct gpd_worker_pool *c, int64_t now)
{
	int64_t late_ms = c->checked_ms ? now - c->checked_ms : 0;

	c->checked_ms = now;
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (late_ms > LATE_MS)
			gpd_heartbeat_extend(&process->heartbeat, late_ms);
		if (has_heartbeat(process) &&
		    gpd_heartbeat_check(&process->heartbeat, &process->channel, now))
			worker_is_hung(c, process);
	}
}

/* The ledger contains the sessions that have been recalled. */
static void
recall_broadcast(struct gpd_worker_pool *c)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		process->recall =
			process->recall || gpd_ledger_next(c->quota->ledger, NULL, process->pid);
}

/* A worker that does not read has messages in its queue; it gets one recall for all that it has
 * missed. */
static void
send_recalls(struct gpd_worker_pool *c)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_RECALL };

	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!process->recall || process->channel.queue)
			continue;
		process->recall = false;
		(void)gpd_channel_post(&process->channel, &header, NULL, 0, -1);
	}
}

static void
ledger_answer(struct gpd_worker_pool *c, const struct gpd_worker_process *process,
	      const struct gpd_channel_message *message)
{
	struct gpd_ledger_session *entry =
		message->header.session ? gpd_ledger_find(c->quota->ledger, message->header.session)
					: NULL;

	if (entry && entry->worker == process->pid &&
	    message->size == sizeof(struct gpd_ledger_query))
		gpd_ledger_answer(c->quota->ledger, entry, message->data);
}

static void
lane_refused(struct gpd_worker_pool *c, const struct gpd_channel_message *message)
{
	const struct gpd_channel_refused *refused = message->data;
	char address[GPD_CLIENT_ADDRESS_NAME_MAX];

	if (message->size != sizeof(*refused) ||
	    !memchr(refused->peer, '\0', sizeof(refused->peer)) ||
	    !memchr(refused->reason, '\0', sizeof(refused->reason)))
		return;
	if (!refused->has_valid_ticket)
		gpd_ledger_count(&c->quota->ledger->lanes_refused, 1);
	gpd_client_address_name(refused->peer, NULL, address);
	gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, address), GPD_LOG_WARNING,
			   "%s: %s", refused->peer, refused->reason);
}

/* No session can be opened in this worker any more. */
static void
channel_set_closed(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	process->channel_closed = true;
	if (process->facts && c->admission->selected[process->group] == process)
		c->admission->selected[process->group] = NULL;
}

static void
read_channel(struct gpd_worker_pool *c, struct gpd_worker_process *process, unsigned int most)
{
	struct gpd_channel_message message;
	int r = GP_E_TIMEOUT;

	while (most-- > 0 && (r = gpd_channel_recv(&process->channel, false, &message)) == 0) {
		if (message.fd >= 0)
			close(message.fd);
		switch (message.header.type) {
		case GPD_CHANNEL_READY:
			worker_ready(c, process, &message);
			break;
		case GPD_CHANNEL_FAILED:
			worker_failed(c, process, &message);
			break;
		case GPD_CHANNEL_CONTEXT:
			worker_follow_context(c, process, &message);
			break;
		case GPD_CHANNEL_PLACE:
			gpd_worker_pool_request_place(c, process, message.header.result);
			break;
		case GPD_CHANNEL_LOST:
			worker_lost(c, process, &message);
			break;
		case GPD_CHANNEL_OPENED:
			gpd_admission_opened(c->admission, process, &message);
			break;
		case GPD_CHANNEL_RECALL:
			recall_broadcast(c);
			break;
		case GPD_CHANNEL_QUERY:
			ledger_answer(c, process, &message);
			break;
		case GPD_CHANNEL_LANE_REFUSED:
			lane_refused(c, &message);
			break;
		case GPD_CHANNEL_BUSY:
			gpd_worker_pool_handle_busy(c, process, &message);
			break;
		case GPD_CHANNEL_WORN:
			worker_worn(c, process, &message);
			break;
		case GPD_CHANNEL_PONG:
			worker_answers(c, process);
			break;
		case GPD_CHANNEL_LANE_OPENED:
			gpd_admission_lane_opened(c->admission, process, &message);
			break;
		case GPD_CHANNEL_CLOSED:
			gpd_admission_closed(c->admission, process, &message);
			break;
		}
	}
	if (r != 0 && r != GP_E_TIMEOUT)
		channel_set_closed(c, process);
}

static void
worker_exited(struct gpd_worker_pool *c, struct gpd_worker_process *process, int status)
{
	bool own = gpd_worker_process_is_dedicated(process), expected, retired;
	int64_t now = gp_now_ms(), start = 0;
	char how[128], text[256];

	/* Its last messages are still in the channel. */
	if (!process->channel_closed)
		read_channel(c, process, UINT_MAX);
	expected = process->state >= GPD_WORKER_RETIRED || c->stopping;
	/* A dedicated worker exits after its session. */
	if (process->state == GPD_WORKER_DEDICATED)
		expected = status == 0 || c->stopping;
	gpd_worker_process_explain_exit(status, how, sizeof(how));
	snprintf(text, sizeof(text), "the worker %s", how);
	retired = process->state == GPD_WORKER_RETIRED;
	c->admission->workers_lost += !expected;
	/* It has been reaped: it must not be killed. */
	(void)gpd_worker_process_set_state(process, GPD_WORKER_ENDING);
	if (!expected && !process->facts && c->served)
		(void)count_context_failure(c, process, 0);
	if (!expected && !c->served && !own && first_worker_restart(c, process, 0)) {
		gpd_error("worker %d %s while it started", (int)process->pid, how);
	} else if (!expected && !c->served && !own) {
		fprintf(stderr, "gpupoold: the worker %s while it started\n", how);
		c->start_failed = true;
	} else if (!expected && (own || process->spare)) {
		worker_report_error(c, process, how);
	} else if (!expected) {
		int *early_exits = &c->groups[process->group].early_exits;

		*early_exits = process->facts ? 0 : *early_exits + 1;
		if (*early_exits >= EARLY_EXITS_MAX)
			start = now + BACKOFF_MS;
		gpd_error("worker %d %s%s", (int)process->pid, how,
			  start ? "; repeated failure, next start delayed" : "");
	} else {
		gpd_debug("worker %d %s", (int)process->pid, how);
	}
	/* With a reason it was killed, and its successor does not fail because of that. */
	if (process->spare && !retired && !process->reason[0] && c->served)
		c->spare_ms = now + BACKOFF_MS;
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_ENDING, start);
	gpd_admission_report_ended(c->admission, process,
				   c->stopping          ? "the daemon is stopping"
				   : process->reason[0] ? process->reason
							: text);
	gpd_admission_worker_exited(c->admission, process, CUDA_ERROR_DEVICE_UNAVAILABLE, text);
	gpd_quota_close_worker(c->quota, process->pid);
	LL_DELETE(c->admission->workers, process);
	process_destroy(c, process);
	/* The slots of its sessions are free now. */
	gpd_admission_retry_queued(c->admission);
}

void
gpd_worker_pool_init(struct gpd_worker_pool *c, const struct gpd_options *options,
		     struct gpd_admission *admission)
{
	*c = (struct gpd_worker_pool){
		.options = options,
		.admission = admission,
		.quota = admission->quota,
		.cgroups = { .folder = -1 },
	};
	admission->find_place = gpd_worker_pool_find_place;
	admission->may_start = gpd_worker_pool_may_start_dedicated;
	admission->start_dedicated = gpd_worker_pool_start_dedicated;
	admission->select_worker = gpd_worker_pool_select;
	admission->arg = c;
	c->quota->queue.get_places = gpd_worker_pool_count_places;
	c->quota->queue.arg = c;
}

void
gpd_worker_pool_reap(struct gpd_worker_pool *c)
{
	struct gpd_worker_process *next;

	for (struct gpd_worker_process *process = c->admission->workers; process; process = next) {
		int status;

		next = process->next;
		if (waitpid(process->pid, &status, WNOHANG) == process->pid)
			worker_exited(c, process, status);
	}
}

/* The tenant of a worker, and what the tenant may use, may have changed. */
static void
limit_memory(struct gpd_worker_pool *c, int64_t now)
{
	const struct gpd_tenants *tenants = &c->quota->tenants;

	if (c->cgroups.folder < 0 || now - c->limited_ms < LIMIT_EVERY_MS)
		return;
	c->limited_ms = now;
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		gpd_worker_cgroup_limit(
			&c->cgroups, process,
			gpd_worker_cgroup_memory_max(c->quota->ledger, process,
						     (unsigned int)tenants->device_count,
						     tenants->machine_memory));
}

/* Limits the time of workers that have nothing left to do but to exit; one that has closed its
 * channel without being requested to exit is broken. */
static void
check_exits(struct gpd_worker_pool *c, int64_t now)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		bool serves =
			process->state >= GPD_WORKER_SERVING && process->state <= GPD_WORKER_SPARE;
		bool retired = process->state == GPD_WORKER_RETIRED &&
			       !gpd_ledger_next(c->quota->ledger, NULL, process->pid);
		int64_t most_ms = serves ? WORKER_LOST_MS : WORKER_EXIT_MS;

		if ((retired || process->channel_closed) && !process->killed &&
		    process->deadline_ms > now + most_ms)
			process->deadline_ms = now + most_ms;
	}
}

void
gpd_worker_pool_check(struct gpd_worker_pool *c, int64_t now)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->deadline_ms > now)
			continue;
		gpd_warning("worker %d: start or exit timed out; killed", (int)process->pid);
		(void)kill(process->pid, SIGKILL);
		process->deadline_ms = INT64_MAX;
		process->killed = true;
	}
	check_exits(c, now);
	limit_memory(c, now);
	if (!c->stopping) {
		check_heartbeats(c, now);
		gpd_worker_pool_grant_places(c, now);
		gpd_worker_pool_select_all(c, now);
	}
}

int
gpd_worker_pool_poll(struct gpd_worker_pool *c, struct pollfd *fds)
{
	int count = 0;

	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		short events = POLLIN;

		process->poll_index = -1;
		if (process->channel_closed || count == GPD_WORKERS_MAX)
			continue;
		if (process->channel.queue)
			events |= POLLOUT;
		process->poll_index = count;
		fds[count++] = (struct pollfd){ .fd = process->channel.fd, .events = events };
	}
	return count;
}

void
gpd_worker_pool_serve(struct gpd_worker_pool *c, const struct pollfd *fds)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		short events = process->poll_index < 0 ? 0 : fds[process->poll_index].revents;

		process->poll_index = -1;
		if (events & POLLOUT && gpd_channel_flush(&process->channel))
			channel_set_closed(c, process);
		if (events & (POLLIN | POLLHUP | POLLERR))
			read_channel(c, process, MESSAGES_MAX);
	}
	send_recalls(c);
}

void
gpd_worker_pool_stop(struct gpd_worker_pool *c)
{
	c->stopping = true;
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		struct gpd_channel_header header = { .type = GPD_CHANNEL_STOP };

		/* It may be ENDING already. */
		(void)gpd_worker_process_set_state(process, GPD_WORKER_ENDING);
		if (gpd_channel_post(&process->channel, &header, NULL, 0, -1))
			(void)kill(process->pid, SIGKILL);
	}
}

void
gpd_worker_pool_fini(struct gpd_worker_pool *c)
{
	while (c->admission->workers) {
		struct gpd_worker_process *process = c->admission->workers;

		c->admission->workers = process->next;
		(void)kill(process->pid, SIGKILL);
		(void)waitpid(process->pid, NULL, 0);
		process_destroy(c, process);
	}
}
