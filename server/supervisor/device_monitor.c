/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/device_monitor.h"

#include "base/clock.h"
#include "server/common/base/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKOFF_MS 5000
/* Maximum time from the start of the process to its first message. */
#define START_MS 120000
/* Time for which a replaced process goes on when the new one watches: events of the time before may
 * not have been reported yet. */
#define FORMER_MS 1000
/* As in worker_pool.c: this process did not run for that long. */
#define LATE_MS 2000
/* At the end of the daemon: attempts to reap the process, and the time between two of them. */
#define REAP_COUNT 100
#define REAP_MS 10

static struct gpd_tenants *
monitor_get_tenants(const struct gpd_device_monitor *m)
{
	return &m->pool->quota->tenants;
}

/* The process ends, and another one starts after it has been reaped. */
static void
process_kill(struct gpd_device_monitor *m, int64_t start_ms)
{
	m->start_ms = start_ms;
	if (m->process)
		(void)kill(m->process->pid, SIGKILL);
}

static void
process_start(struct gpd_device_monitor *m, uint32_t devices)
{
	struct gpd_worker_start start = {
		.monitor = true,
		.driver = m->library,
		.software = true,
		.peer_memory = true,
		.ledger_fd = m->pool->quota->fd,
	};

	gpd_tenants_list_devices(monitor_get_tenants(m), devices, &start.devices);
	m->process = gpd_worker_process_start(&start);
	if (m->process) {
		m->process->deadline_ms = gp_now_ms() + START_MS;
		return;
	}
	gpd_error("cannot start the device monitor: %m");
	m->start_ms = gp_now_ms() + BACKOFF_MS;
}

/* The software device has NVML functions of its own, in the library that the worker has opened. */
static bool
find_library(struct gpd_device_monitor *m)
{
	const struct gpd_worker_process *worker = m->pool->admission->workers;

	if (m->library || !monitor_get_tenants(m)->software)
		return true;
	while (worker && !worker->facts)
		worker = worker->next;
	if (worker)
		m->library = strdup(worker->facts->driver_name);
	return m->library != NULL;
}

static void
report_watched(const struct gpd_device_monitor *m, uint32_t watched)
{
	char list[128] = "";

	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		if (watched >> i & 1)
			(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%d",
				       list[0] ? ", " : "", i);
	}
	gpd_info("device monitor %d: watches devices %s", (int)m->process->pid, list);
	watched = m->process->devices & ~watched;
	for (int i = 0; i < monitor_get_tenants(m)->device_count; i++) {
		if (watched >> i & 1)
			gpd_warning("device monitor %d: device %d reports no events: a GPU that "
				    "fails is not noticed",
				    (int)m->process->pid, i);
	}
}

static void
handle_failed(struct gpd_device_monitor *m, const struct gpd_channel_message *message)
{
	char text[256];

	m->off = true;
	gpd_channel_text(message, text, sizeof(text));
	gpd_info("no device monitor: %s: a GPU that fails is noticed when its contexts do", text);
}

static void
handle_event(struct gpd_device_monitor *m, const struct gpd_channel_message *message)
{
	struct gpd_tenants *tenants = monitor_get_tenants(m);
	int device = message->header.result;
	struct gpd_device_event event;

	if (message->size != sizeof(event) || device < 0 || device >= tenants->device_count)
		return;
	memcpy(&event, message->data, sizeof(event));
	if (!gpd_device_health_handle(&tenants->devices[device].health, device, &event))
		return;
	gpd_worker_pool_end_device(m->pool, device);
}

static void
former_kill(const struct gpd_device_monitor *m)
{
	if (m->former)
		(void)kill(m->former->pid, SIGKILL);
}

static void
handle_message(struct gpd_device_monitor *m, struct gpd_worker_process *process,
	       const struct gpd_channel_message *message)
{
	if (message->fd >= 0)
		close(message->fd);
	switch (message->header.type) {
	case GPD_CHANNEL_MONITORS:
		(void)gpd_worker_process_set_state(process, GPD_WORKER_SERVING);
		report_watched(m, (uint32_t)message->header.result);
		if (m->former)
			m->former->deadline_ms = gp_now_ms() + FORMER_MS;
		break;
	case GPD_CHANNEL_FAILED:
		handle_failed(m, message);
		former_kill(m);
		break;
	case GPD_CHANNEL_DEVICE_EVENT:
		handle_event(m, message);
		break;
	case GPD_CHANNEL_PONG:
		(void)gpd_heartbeat_answered(&process->heartbeat, gp_now_ms());
		break;
	}
}

static void
check_heartbeat(struct gpd_device_monitor *m, int64_t now_ms)
{
	int64_t late_ms = m->checked_ms ? now_ms - m->checked_ms : 0;

	if (late_ms > LATE_MS)
		gpd_heartbeat_extend(&m->process->heartbeat, late_ms);
	if (m->process->channel_closed)
		return;
	/* A process that ends with an unread ping resets the channel, and why it ends is lost. */
	if (m->process->state == GPD_WORKER_STARTING
		    ? now_ms < m->process->deadline_ms
		    : !gpd_heartbeat_check(&m->process->heartbeat, &m->process->channel, now_ms))
		return;
	m->process->deadline_ms = INT64_MAX;
	gpd_error(
		"device monitor %d does not answer: it hangs in the driver's NVML, and is replaced",
		(int)m->process->pid);
	process_kill(m, now_ms + BACKOFF_MS);
}

void
gpd_device_monitor_init(struct gpd_device_monitor *m, struct gpd_worker_pool *pool)
{
	*m = (struct gpd_device_monitor){ .pool = pool };
}

/* A process that watches goes on until the new one does; a second replacement waits for that. */
static void
process_replace(struct gpd_device_monitor *m, uint32_t devices)
{
	bool watches = m->process->state == GPD_WORKER_SERVING;

	if (devices && watches && !m->former) {
		m->former = m->process;
		m->former->deadline_ms = INT64_MAX;
		m->process = NULL;
		m->start_ms = 0;
	} else if (!devices || !watches) {
		m->process->channel_closed = true;
		process_kill(m, 0);
	}
}

void
gpd_device_monitor_check(struct gpd_device_monitor *m, int64_t now_ms)
{
	uint32_t devices = gpd_tenants_get_usable(monitor_get_tenants(m), GPD_GROUP_SHARED);

	/* By a worker's failures, or by an event, a device has become sick; or it is enabled. */
	if (m->process && m->process->devices != devices && !m->process->channel_closed)
		process_replace(m, devices);
	if (m->former && (!devices || m->former->deadline_ms <= now_ms))
		former_kill(m);
	if (m->process)
		check_heartbeat(m, now_ms);
	else if (!m->off && devices && m->pool->served && m->start_ms <= now_ms && find_library(m))
		process_start(m, devices);
	m->checked_ms = now_ms;
}

int
gpd_device_monitor_poll(const struct gpd_device_monitor *m, struct pollfd *fds)
{
	const struct gpd_worker_process *processes[] = { m->former, m->process };
	int count = 0;

	for (int i = 0; i < GPD_DEVICE_MONITORS_MAX; i++) {
		if (processes[i] && !processes[i]->channel_closed)
			fds[count++] =
				(struct pollfd){ .fd = processes[i]->channel.fd, .events = POLLIN };
	}
	return count;
}

static void
process_serve(struct gpd_device_monitor *m, struct gpd_worker_process *process)
{
	struct gpd_channel_message message;
	int r = 0;

	while (process && !process->channel_closed && r == 0) {
		r = gpd_channel_recv(&process->channel, false, &message);
		if (r == 0)
			handle_message(m, process, &message);
		else if (r != GP_E_TIMEOUT)
			process->channel_closed = true;
	}
}

void
gpd_device_monitor_serve(struct gpd_device_monitor *m)
{
	process_serve(m, m->former);
	process_serve(m, m->process);
}

/* Returns whether the process has ended, with *status_p as of waitpid(2). Its last messages have
 * been handled. */
static bool
process_reap(struct gpd_device_monitor *m, struct gpd_worker_process *process, int *status_p)
{
	if (!process || waitpid(process->pid, status_p, WNOHANG) != process->pid)
		return false;
	process_serve(m, process);
	return true;
}

void
gpd_device_monitor_reap(struct gpd_device_monitor *m)
{
	int64_t now_ms = gp_now_ms();
	char how[128];
	int status;

	if (process_reap(m, m->former, &status)) {
		gpd_worker_process_destroy(m->former);
		m->former = NULL;
	}
	if (!process_reap(m, m->process, &status))
		return;
	/* Else it was killed to be replaced, or has reported why it ends. */
	if (!m->off && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)) {
		gpd_worker_process_explain_exit(status, how, sizeof(how));
		gpd_error("device monitor %d %s; another one starts", (int)m->process->pid, how);
		m->start_ms = now_ms + BACKOFF_MS;
	}
	gpd_worker_process_destroy(m->process);
	m->process = NULL;
}

void
gpd_device_monitor_stop(struct gpd_device_monitor *m)
{
	m->off = true;
	former_kill(m);
	process_kill(m, 0);
}

void
gpd_device_monitor_fini(struct gpd_device_monitor *m)
{
	gpd_device_monitor_stop(m);
	/* A process in the driver of a GPU that has failed may not end. */
	for (int i = 0; (m->process || m->former) && i < REAP_COUNT; i++) {
		gpd_device_monitor_reap(m);
		if (m->process || m->former)
			gp_sleep_ns((uint64_t)REAP_MS * 1000000);
	}
	if (m->process)
		gpd_worker_process_destroy(m->process);
	if (m->former)
		gpd_worker_process_destroy(m->former);
	free(m->library);
}

int
gpd_device_monitor_enable(struct gpd_device_monitor *m, uint32_t device, char *error, size_t size)
{
	struct gpd_tenants *tenants = monitor_get_tenants(m);

	if (device >= (uint32_t)tenants->device_count) {
		(void)snprintf(error, size, "unknown device %u: the daemon has %d, counted from 0",
			       device, tenants->device_count);
		return GP_E_INVALID;
	}
	if (!gpd_device_health_enable(&tenants->devices[device].health)) {
		(void)snprintf(error, size, "device %u is not sick: nothing to enable", device);
		return GP_E_INVALID;
	}
	atomic_store(&tenants->ledger->sick[device], 0);
	gpd_info("device %u is enabled: new sessions use it", device);
	gpd_admission_retry_queued(m->pool->admission);
	return 0;
}
