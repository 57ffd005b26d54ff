/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the workers for new sessions, and retires those that get none. */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/worker_pool_internal.h"
#include "server/supervisor/workers/orphaned_work.h"

#include <cuda.h>
#include <signal.h>
#include <stdio.h>

/* How long new sessions wait for orphaned work to end, and if there is a spare worker. */
#define BUSY_MS 2000
#define BUSY_SPARE_MS 30

static void
start_worker(struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	struct gpd_worker_process *process = gpd_worker_pool_acquire(c, need);
	uint32_t group = need->group;

	c->admission->selected[group] = process;
	c->groups[group].start_ms = process ? 0 : gp_now_ms() + BACKOFF_MS;
	if (!process)
		return;
	if (group != GPD_GROUP_SHARED)
		(void)snprintf(process->tenant, sizeof(process->tenant), "%s",
			       c->quota->ledger->tenants[group - 1].name);
	/* It was spare. */
	if (process->state == GPD_WORKER_SPARE)
		(void)gpd_worker_process_set_state(process, GPD_WORKER_SERVING);
}

/* Stops assigning new sessions to the worker; if it was the selected one, another may be started at
 * start_ms. */
void
gpd_worker_pool_stop_serving(struct gpd_worker_pool *c, struct gpd_worker_process *process,
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
void
gpd_worker_pool_retire_worker(struct gpd_worker_pool *c, struct gpd_worker_process *process)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_RETIRE };

	gpd_worker_pool_stop_serving(c, process,
				     gpd_worker_process_is_dedicated(process) ? GPD_WORKER_ABANDONED
									      : GPD_WORKER_RETIRED,
				     0);
	if (gpd_channel_post(&process->channel, &header, NULL, 0, -1))
		(void)kill(process->pid, SIGKILL);
}

/* While orphaned work runs, the worker cannot load the modules of new clients. */
void
gpd_worker_pool_handle_busy(struct gpd_worker_pool *c, struct gpd_worker_process *process,
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
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_ENDING, 0);
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
	gpd_worker_pool_stop_serving(c, process, GPD_WORKER_WEDGED, 0);
	gpd_admission_report_wedged(c->admission, process);
	kill_oldest_wedged_worker(c, process);
}

struct gpd_worker_process *
gpd_worker_pool_find_serving(const struct gpd_worker_pool *c, uint32_t group)
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

/* Returns whether new sessions get a spare worker, because the selected one has been BUSY for too
 * long. */
static bool
worker_delays_sessions(const struct gpd_worker_pool *c, const struct gpd_worker_process *selected,
		       const struct gpd_worker_need *need)
{
	return selected->state == GPD_WORKER_BUSY &&
	       selected->state_ms + BUSY_SPARE_MS <= gp_now_ms() &&
	       !gpd_worker_pool_holds_back(c, need->group, need->device) &&
	       gpd_worker_pool_find_spare(c, need);
}

/* Selects a worker for new sessions of the client's group. Returns whether it can get them now. */
static bool
choose_worker(struct gpd_worker_pool *c, const struct gpd_connection *connection)
{
	const struct gpd_worker_need need = gpd_worker_pool_get_need(c, connection);
	struct gpd_worker_process *selected = c->admission->selected[need.group], *other;

	if (selected && selected->state == GPD_WORKER_SERVING)
		return true;
	other = gpd_worker_pool_find_serving(c, need.group);
	if (other)
		c->admission->selected[need.group] = other;
	else if ((!selected || worker_delays_sessions(c, selected, &need)) && need.devices &&
		 c->groups[need.group].start_ms <= gp_now_ms() &&
		 gpd_worker_pool_may_acquire(c, &need))
		start_worker(c, &need);
	selected = c->admission->selected[need.group];
	return selected && selected->state == GPD_WORKER_SERVING;
}

void
gpd_worker_pool_select(void *arg, const struct gpd_connection *connection)
{
	struct gpd_worker_pool *c = arg;

	if (c->served && !c->stopping)
		(void)choose_worker(c, connection);
}

/* Returns whether a waiting client may get its session or its own worker now: it has a worker; or
 * its worker has failed, and another one has to be started; or enough time has passed. */
static bool
queue_needs_retry(struct gpd_worker_pool *c)
{
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next) {
		const struct gpd_worker_process *selected;
		struct gpd_worker_need need;

		if (p->state == GPD_CONNECTION_STARTING && !p->own_worker &&
		    gpd_worker_pool_may_start_dedicated(c, p))
			return true;
		if (p->state != GPD_CONNECTION_QUEUED || p->full_reason[0] ||
		    p->assignment.dedicated)
			continue;
		selected = c->admission->selected[p->assignment.group];
		if (!selected || selected->state == GPD_WORKER_SERVING ||
		    gpd_worker_pool_find_serving(c, p->assignment.group))
			return true;
		need = gpd_worker_pool_get_need(c, p);
		if (worker_delays_sessions(c, selected, &need))
			return true;
	}
	return false;
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
			gpd_worker_pool_retire_worker(c, process);
	}
}

/* Selects the workers for new sessions, and retires those that are not needed. */
void
gpd_worker_pool_select_all(struct gpd_worker_pool *c, int64_t now)
{
	retire_unfit_workers(c);
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->state == GPD_WORKER_BUSY && process->state_ms + BUSY_MS <= now)
			worker_wedged(c, process);
	}
	if (c->served && queue_needs_retry(c))
		gpd_admission_retry_queued(c->admission);
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (worker_is_unneeded(c, process, now))
			gpd_worker_pool_retire_worker(c, process);
	}
	gpd_worker_pool_maintain_reserve(c, now);
}

bool
gpd_worker_pool_retire(struct gpd_worker_pool *c, pid_t worker)
{
	struct gpd_worker_process *chosen = c->admission->workers;
	bool spare;

	while (chosen && chosen->pid != worker)
		chosen = chosen->next;
	if (!chosen || chosen->state < GPD_WORKER_SERVING || chosen->state > GPD_WORKER_DEDICATED)
		return false;
	/* Those of the reserve lack the reason for the replacement (such as another driver), too.
	 */
	spare = worker_is_shared(chosen) || chosen->state == GPD_WORKER_SPARE;
	if (worker_is_shared(chosen))
		gpd_worker_pool_retire_worker(c, chosen);
	for (struct gpd_worker_process *process = c->admission->workers; spare && process;
	     process = process->next) {
		if (process->state == GPD_WORKER_SPARE)
			gpd_worker_pool_retire_worker(c, process);
	}
	return true;
}
