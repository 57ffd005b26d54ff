/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/worker_pool.h"

#include "base/clock.h"
#include "server/common/base/client_address_name.h"
#include "server/common/base/log.h"
#include "server/supervisor/workers/orphaned_work.h"

#include <cuda.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utlist.h>

#define WORKER_START_MS 120000
#define WORKER_LOST_MS 1500
/* How long new sessions wait for orphaned work to end. */
#define BUSY_MS 2000
/* Successive workers of a group that end before they are ready. */
#define EARLY_EXITS_MAX 5
#define BACKOFF_MS 5000
/* Limit of messages per worker and iteration, so that the others get their turn. */
#define MESSAGES_MAX 256
/* An iteration with this delay means that this process or the machine did not run. */
#define LATE_MS 2000
/* Time between two updates of the memory limits of control groups. */
#define LIMIT_EVERY_MS 1000
/* Hardware queues of a worker's contexts (gpd_worker_process_start()): the maximum for a worker
 * that is the only one, or that runs the sessions of several tenants; else the driver's default.
 * The time to create a context increases with the number of queues of all contexts on the device:
 * by 0.25 s for each context with 32 queues, by 0.02 s for one with 8 (H200, driver 580).
 */
#define CONNECTIONS_MAX 32
#define CONNECTIONS_DEFAULT 8

static int
get_connections(const struct gpd_worker_pool *c, uint32_t group)
{
	return group == GPD_GROUP_SHARED || !gpd_tenants_are_apart(&c->quota->tenants)
		       ? CONNECTIONS_MAX
		       : CONNECTIONS_DEFAULT;
}

/* Requirements of a worker. */
struct worker_need {
	uint32_t devices;  /* bit n: it may use device n */
	uint32_t contexts; /* bit n: one that is started creates a context on device n */
	bool exact;        /* it may use no other devices */
	int connections;   /* as many hardware queues, or more */
};

/* A worker has a context on its first device when it is ready, and creates others when a session
 * uses them. */
static uint32_t
get_first(uint32_t devices)
{
	return devices & -devices;
}

static struct worker_need
get_need(const struct gpd_worker_pool *c, uint32_t group)
{
	uint32_t devices = gpd_tenants_get_usable(&c->quota->tenants, group);

	return (struct worker_need){
		.devices = devices,
		.contexts = get_first(devices),
		.exact = true,
		.connections = get_connections(c, group),
	};
}

static struct gpd_worker_process *
process_start(struct gpd_worker_pool *c, const struct worker_need *need)
{
	/* A daemon that has served GPUs must not continue with the software device. */
	bool software = gpd_options_software(c->options, c->quota->tenants.config) &&
			(!c->served || c->quota->tenants.software);
	struct gpd_worker_start start = {
		.driver = c->options->driver,
		.software = software,
		.rdma = c->options->rdma,
		.peer_memory = !c->options->no_peer_memory,
		.connections = need->connections,
		.syscall_filter = c->options->syscall_filter,
		.ledger_fd = c->quota->fd,
	};
	struct gpd_worker_process *process;
	int64_t now = gp_now_ms();

	gpd_tenants_list_devices(&c->quota->tenants, need->devices, &start.devices);
	start.devices.contexts = need->contexts;
	process = gpd_worker_process_start(&start);
	if (!process) {
		gpd_error("cannot start a worker: %m");
		return NULL;
	}
	process->deadline_ms = now + WORKER_START_MS;
	gpd_worker_cgroup_create(&c->cgroups, process->pid);
	LL_PREPEND(c->admission->workers, process);
	gpd_debug("worker %d starts", (int)process->pid);
	return process;
}

/* Returns a spare worker that meets the need, or NULL. */
static struct gpd_worker_process *
find_spare(const struct gpd_worker_pool *c, enum gpd_worker_process_state state,
	   const struct worker_need *need)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->spare && process->state == state && !process->channel_closed &&
		    !(need->devices & ~process->devices) &&
		    (!need->exact || need->devices == process->devices) &&
		    process->connections >= need->connections)
			return process;
	}
	return NULL;
}

static uint32_t
count_spare(const struct gpd_worker_pool *c)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += process->spare && process->state <= GPD_WORKER_SPARE;
	return count;
}

/* Returns the number of spare workers that are kept for sessions that share a worker: 1 while there
 * is no such worker, so that the first session does not wait for a start. */
static uint32_t
count_first(const struct gpd_worker_pool *c)
{
	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!process->spare && !gpd_worker_process_is_dedicated(process) &&
		    process->state <= GPD_WORKER_BUSY)
			return 0;
	}
	return 1;
}

/* Returns a worker that is spare, or starting as a spare, or new. */
static struct gpd_worker_process *
acquire_worker(struct gpd_worker_pool *c, const struct worker_need *need)
{
	struct gpd_worker_process *process = find_spare(c, GPD_WORKER_SPARE, need);

	if (!process)
		process = find_spare(c, GPD_WORKER_STARTING, need);
	if (!process)
		return process_start(c, need);
	process->spare = false;
	return process;
}

/* Callback of the admission. A session may get a spare worker with more devices, so that it does
 * not wait for a start. */
static struct gpd_worker_process *
acquire_for_session(void *arg, uint32_t devices)
{
	struct gpd_worker_pool *c = arg;
	const struct worker_need need = { .devices = devices,
					  .contexts = get_first(devices),
					  .connections = CONNECTIONS_DEFAULT };

	return count_spare(c) > count_first(c) ? acquire_worker(c, &need) : process_start(c, &need);
}

static void
start_worker(struct gpd_worker_pool *c, uint32_t group)
{
	const struct worker_need need = get_need(c, group);
	struct gpd_worker_process *process = acquire_worker(c, &need);

	c->admission->selected[group] = process;
	c->groups[group].start_ms = process ? 0 : gp_now_ms() + BACKOFF_MS;
	if (!process)
		return;
	process->group = group;
	if (group != GPD_GROUP_SHARED)
		(void)snprintf(process->tenant, sizeof(process->tenant), "%s",
			       c->quota->ledger->tenants[group - 1].name);
	/* It was spare. */
	if (process->state == GPD_WORKER_SPARE)
		(void)gpd_worker_process_set_state(process, GPD_WORKER_SERVING);
}

/* Stops assigning new sessions to the worker; if it was the selected one, another may be started at
 * start_ms. */
static void
worker_stop_serving(struct gpd_worker_pool *c, struct gpd_worker_process *process,
		    enum gpd_worker_process_state state, int64_t start_ms)
{
	/* Messages sent earlier may arrive when it is ENDING; it stays in that state then. */
	(void)gpd_worker_process_set_state(process, state);
	if (c->admission->selected[process->group] != process)
		return;
	c->admission->selected[process->group] = NULL;
	c->groups[process->group].start_ms = start_ms;
}

/* Its sessions continue, and it exits after the last one. */
static void
worker_retire(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_RETIRE };

	worker_stop_serving(c, process,
			    gpd_worker_process_is_dedicated(process) ? GPD_WORKER_ABANDONED
								     : GPD_WORKER_RETIRED,
			    0);
	if (gpd_channel_post(&process->channel, &header, NULL, 0, -1))
		(void)kill(process->pid, SIGKILL);
}

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
	worker_retire(c, process);
}

static void
process_destroy(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	gpd_worker_cgroup_destroy(&c->cgroups, process->pid);
	if (gpd_worker_process_is_dedicated(process))
		gpd_client_address_put(process->client_address);
	gpd_worker_process_destroy(process);
}

static void
worker_ready(struct gpd_worker_pool *c, struct gpd_worker_process *process,
	     const struct gpd_channel_message *message)
{
	bool own = gpd_worker_process_is_dedicated(process);

	process->facts = gpupool__welcome__unpack(NULL, message->size, message->data);
	if (!process->facts || process->state != GPD_WORKER_STARTING)
		return;
	process->deadline_ms = INT64_MAX;
	/* Those after the first log at debug level: a client can start any number of them, and must
	 * not cause more lines than its log budget allows. */
	for (size_t i = 0; i < process->facts->n_devices && i < GPD_LEDGER_DEVICES; i++) {
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
			worker_retire(c, process);
		gpd_admission_retry_queued(c->admission);
		return;
	}
	if (own) {
		if (c->stopping || !gpd_admission_dedicated_ready(c->admission, process))
			worker_retire(c, process);
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
	worker_stop_serving(c, process, GPD_WORKER_ENDING, 0);
	gpd_admission_worker_exited(c->admission, process, CUDA_ERROR_DEVICE_UNAVAILABLE,
				    process->reason);
	(void)kill(process->pid, SIGKILL);
}

/* Other workers may not create a context on the device (ledger->sick); choose_workers() retires
 * them, because they have the device open. */
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
	if (process->facts && context->step == GPD_CONTEXT_FAILED)
		(void)gpd_device_health_suspect(health, context->result);
	else if (!process->facts && context->step == GPD_CONTEXT_CREATED)
		gpd_device_health_context_created(health);
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

	gpd_channel_text(message, text, sizeof(text));
	worker_stop_serving(c, process, GPD_WORKER_ENDING, gp_now_ms() + BACKOFF_MS);
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
	worker_stop_serving(c, process, GPD_WORKER_LOST, 0);
	gpd_admission_worker_lost(c->admission, process, message->header.result, &lost);
}

/* While orphaned work runs, the worker cannot load the modules of new clients. */
static void
worker_busy(struct gpd_worker_pool *c, struct gpd_worker_process *process,
	    const struct gpd_channel_message *message)
{
	gpd_orphaned_work_update(process, c->quota->ledger, message);
	if (gpd_worker_process_set_state(process, process->orphaned > 0 ? GPD_WORKER_BUSY
									: GPD_WORKER_SERVING))
		gpd_admission_retry_queued(c->admission);
}

/* Kills a worker with its sessions if too many are wedged, after `last` has become so. */
static void
kill_oldest_wedged_worker(struct gpd_worker_pool *c, const struct gpd_worker_process *last)
{
	struct gpd_worker_process *process =
		gpd_orphaned_work_find_victim(c->admission->workers, last, c->quota->ledger);
	char owners[300];

	if (!process)
		return;
	gpd_orphaned_work_format_tenants(process, c->quota->ledger, owners, sizeof(owners));
	snprintf(process->reason, sizeof(process->reason),
		 "orphaned work of a tenant in more than %d workers: the oldest is killed",
		 GPD_WEDGED_WORKERS_MAX);
	gpd_error("worker %d: %s; orphaned work of tenant %s", (int)process->pid, process->reason,
		  owners);
	worker_stop_serving(c, process, GPD_WORKER_ENDING, 0);
	gpd_admission_worker_exited(c->admission, process, CUDA_ERROR_LAUNCH_TIMEOUT,
				    process->reason);
	(void)kill(process->pid, SIGKILL);
}

/* The orphaned work does not end: existing sessions continue, new ones get another worker. */
static void
worker_wedged(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	gpd_warning("worker %d: orphaned work still running; new sessions use another worker",
		    (int)process->pid);
	worker_stop_serving(c, process, GPD_WORKER_WEDGED, 0);
	gpd_admission_report_wedged(c->admission, process);
	kill_oldest_wedged_worker(c, process);
}

/* Depending on the configuration, either only reports the hang, or kills the worker with its
 * sessions so that another one starts. */
static void
worker_is_hung(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	bool restart = c->quota->tenants.config->on_hang == GPD_CONFIG_ON_HANG_RESTART;

	gpd_error("worker %d: no heartbeat for %d s: stopped, or hung in the driver; %s",
		  (int)process->pid, GPD_HEARTBEAT_DUE_MS / 1000,
		  restart ? "it is killed, and another one starts (on-hang = restart)"
			  : "its sessions wait (on-hang = report)");
	gpd_admission_set_hanging(c->admission, process, true);
	if (!restart)
		return;
	c->admission->workers_lost++;
	snprintf(process->reason, sizeof(process->reason),
		 "its worker did not answer and was killed (on-hang = restart)");
	worker_stop_serving(c, process, GPD_WORKER_ENDING, 0);
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

/* Returns the group's oldest worker that can get new sessions. */
static struct gpd_worker_process *
find_serving(const struct gpd_worker_pool *c, uint32_t group)
{
	struct gpd_worker_process *found = NULL;

	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->state == GPD_WORKER_SERVING && !process->channel_closed &&
		    gpd_worker_process_serves(process, c->quota->ledger, group))
			found = process;
	}
	return found;
}

/* Returns whether a session that arrives now has to wait for the start of a worker if this one is
 * gone. */
static bool
worker_is_last(const struct gpd_worker_pool *c, const struct gpd_worker_process *process)
{
	for (const struct gpd_worker_process *other = c->admission->workers; other;
	     other = other->next) {
		if (other != process && !other->channel_closed &&
		    (other->state == GPD_WORKER_SERVING || other->state == GPD_WORKER_SPARE))
			return false;
	}
	return true;
}

/* A worker that gets no new sessions and has only orphaned work is not needed; the selected one of
 * a group is kept for a while after its last session, and for as long as it is the last one. */
static bool
worker_is_unneeded(const struct gpd_worker_pool *c, struct gpd_worker_process *process, int64_t now)
{
	const struct gpd_config *config = c->quota->tenants.config;
	bool selected = process == c->admission->selected[process->group];
	int sessions = 0;

	if (process->state != GPD_WORKER_SERVING && process->state != GPD_WORKER_WEDGED)
		return false;
	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(c->quota->ledger, s, process->pid));)
		sessions++;
	if (sessions > process->orphaned)
		process->unused_ms = 0;
	else if (!process->unused_ms)
		process->unused_ms = now;
	if (sessions > process->orphaned)
		return false;
	if (!selected || !gpd_worker_process_serves(process, c->quota->ledger, process->group))
		return true;
	return now - process->unused_ms >= 1000 * (int64_t)config->worker_idle_timeout &&
	       !worker_is_last(c, process);
}

static uint32_t
spare_target(const struct gpd_worker_pool *c)
{
	return gpd_tenants_get_ready_workers(&c->quota->tenants) + count_first(c);
}

/* Returns the devices on which a new worker must try to create a context. */
static uint32_t
get_suspects(const struct gpd_worker_pool *c)
{
	uint32_t suspects = 0;

	for (int i = 0; i < c->quota->tenants.device_count; i++) {
		if (c->quota->tenants.devices[i].health.suspect)
			suspects |= UINT32_C(1) << i;
	}
	return suspects;
}

/* Spare workers are started one at a time, after workers that sessions wait for. */
static bool
wants_spare(const struct gpd_worker_pool *c)
{
	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->state == GPD_WORKER_STARTING)
			return false;
	}
	return count_spare(c) < spare_target(c) || get_suspects(c);
}

static void
reserve_maintain(struct gpd_worker_pool *c, int64_t now)
{
	struct worker_need need = get_need(c, GPD_GROUP_SHARED);
	const struct worker_need any = { 0 };
	struct gpd_worker_process *process;

	need.connections = get_connections(c, gpd_tenant_group(0));
	need.contexts |= get_suspects(c) & need.devices;
	if (need.devices && wants_spare(c) && c->spare_ms <= now) {
		process = process_start(c, &need);
		if (process)
			process->spare = true;
		else
			c->spare_ms = now + BACKOFF_MS;
	}
	while (count_spare(c) > spare_target(c) &&
	       (process = find_spare(c, GPD_WORKER_SPARE, &any)))
		worker_retire(c, process);
}

/* Selects a worker for new sessions of the group. Returns whether it can get them now. */
static bool
choose_worker(struct gpd_worker_pool *c, uint32_t group)
{
	struct gpd_worker_process *selected = c->admission->selected[group], *other;
	const struct worker_need need = get_need(c, group);

	if (selected && selected->state == GPD_WORKER_SERVING)
		return true;
	other = find_serving(c, group);
	if (other)
		c->admission->selected[group] = other;
	else if (!selected && need.devices && c->groups[group].start_ms <= gp_now_ms() &&
		 (find_spare(c, GPD_WORKER_SPARE, &need) || gpd_admission_may_start(c->admission)))
		start_worker(c, group);
	selected = c->admission->selected[group];
	return selected && selected->state == GPD_WORKER_SERVING;
}

/* Callback of the admission. */
static void
select_worker(void *arg, uint32_t group)
{
	struct gpd_worker_pool *c = arg;

	if (c->served && !c->stopping)
		(void)choose_worker(c, group);
}

/* Selects workers for queued clients: one may have failed since the client was queued. Returns
 * whether a queued client has a worker now. */
static bool
choose_for_queued(struct gpd_worker_pool *c)
{
	bool chosen = false;

	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next) {
		if (p->state == GPD_CONNECTION_QUEUED && !p->full_reason[0] &&
		    !p->assignment.dedicated)
			chosen = choose_worker(c, p->assignment.group) || chosen;
	}
	return chosen;
}

static bool
worker_is_shared(const struct gpd_worker_process *process)
{
	return process->state >= GPD_WORKER_SERVING && process->state <= GPD_WORKER_WEDGED;
}

/* Retires workers whose new sessions may use a device that the workers do not know: it has been
 * enabled or, by the configuration, allowed since they started. Retires those that know a sick
 * device, too: it cannot be reset while a process has it open. */
static void
retire_unfit_workers(struct gpd_worker_pool *c)
{
	uint32_t sick = 0;

	for (int i = 0; i < c->quota->tenants.device_count; i++) {
		if (gpd_device_is_sick(&c->quota->tenants.devices[i].health))
			sick |= UINT32_C(1) << i;
	}
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		uint32_t group = process->spare ? GPD_GROUP_SHARED : process->group;

		if ((worker_is_shared(process) || process->state == GPD_WORKER_SPARE) &&
		    ((gpd_tenants_get_usable(&c->quota->tenants, group) & ~process->devices) ||
		     (process->devices & sick)))
			worker_retire(c, process);
	}
}

/* Selects the workers for new sessions, and retires those that are not needed. */
static void
choose_workers(struct gpd_worker_pool *c, int64_t now)
{
	retire_unfit_workers(c);
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->state == GPD_WORKER_BUSY && process->state_ms + BUSY_MS <= now)
			worker_wedged(c, process);
	}
	if (c->served && choose_for_queued(c))
		gpd_admission_retry_queued(c->admission);
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (worker_is_unneeded(c, process, now))
			worker_retire(c, process);
	}
	reserve_maintain(c, now);
}

/* The ledger contains the sessions that have been recalled. */
static void
recall_broadcast(struct gpd_worker_pool *c)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_RECALL };

	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (gpd_ledger_next(c->quota->ledger, NULL, process->pid))
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
			worker_busy(c, process, &message);
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
		process->channel_closed = true;
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
	worker_stop_serving(c, process, GPD_WORKER_ENDING, start);
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
	admission->start_dedicated = acquire_for_session;
	admission->select_worker = select_worker;
	admission->arg = c;
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
						     (unsigned int)tenants->device_count));
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
	}
	limit_memory(c, now);
	if (!c->stopping) {
		check_heartbeats(c, now);
		choose_workers(c, now);
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
			process->channel_closed = true;
		if (events & (POLLIN | POLLHUP | POLLERR))
			read_channel(c, process, MESSAGES_MAX);
	}
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

bool
gpd_worker_pool_retire(struct gpd_worker_pool *c, pid_t worker)
{
	bool found = false;

	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		bool chosen = process->pid == worker;

		found = found || (chosen && process->state >= GPD_WORKER_SERVING &&
				  process->state <= GPD_WORKER_DEDICATED);
		/* Those of the reserve lack the reason for the replacement (such as another
		 * driver), too. */
		if ((worker_is_shared(process) && chosen) || process->state == GPD_WORKER_SPARE)
			worker_retire(c, process);
	}
	return found;
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
