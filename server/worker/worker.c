/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/worker.h"

#include "base/clock.h"
#include "base/machine.h"
#include "protocol/control.h"
#include "server/common/base/device_list.h"
#include "server/common/base/log.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/connect/lane_accept.h"
#include "server/worker/connect/lane_rdma.h"
#include "server/worker/connect/snapshot.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/driver_stderr.h"
#include "server/worker/device/gpudirect_memory.h"
#include "server/worker/device/window.h"
#include "server/worker/executor/executor.h"
#include "server/worker/host/host_arena.h"
#include "server/worker/host/host_space.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/module/image_preload.h"
#include "server/worker/module/library.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/session/worker_retirement.h"
#include "server/worker/stream/print.h"
#include "server/worker/stream/stream_pool.h"
#include "transport/transport.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARENAS 4
/* Longest wait for the supervisor's reply to a request for a place; it replies within 10 s. */
#define PLACE_WAIT_MS 12000

/* Places on devices (supervisor/tenancy/tenants.h); bit n: device n. */
static struct {
	_Atomic uint32_t granted;  /* the worker may create a context there */
	_Atomic uint32_t answered; /* the supervisor has replied to the last request */
} places;

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* The allowance and the preloads are for a new session only. */
static void
reply_opened(uint64_t id, const struct gpd_range *window, struct gpd_session *session,
	     struct gp_bytes known)
{
	size_t fixed =
		sizeof(struct gpd_channel_opened) + (size_t)gpd_devices.count * sizeof(uint64_t);
	struct gpd_channel_opened *opened = calloc(1, fixed + known.size);

	/* The supervisor then abandons the opening. */
	if (!opened)
		return;
	opened->window = *window;
	opened->device_count = (uint32_t)gpd_devices.count;
	if (session) {
		opened->granted = gpd_allowance_create(session, &opened->granted_device);
		gpd_host_memory_reserve(session, &opened->host);
	}
	for (int i = 0; i < gpd_devices.count; i++) {
		size_t free_memory = 0, total = 0;

		(void)gpd_device_get_memory(i, &free_memory, &total);
		opened->memory_free[i] = free_memory;
		if (gpd_device_has_context(i))
			opened->contexts |= UINT32_C(1) << i;
	}
	if (known.size)
		memcpy((char *)opened + fixed, known.data, known.size);
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_OPENED, 0, id, opened, fixed + known.size);
	free(opened);
}

/* Maximum memory of the session on all its devices together. */
static uint64_t
session_get_memory_max(uint32_t entry)
{
	const struct gpd_ledger_session *session = &gpd_sessions.ledger->sessions[entry];
	uint64_t sum = 0;

	for (int i = 0; i < gpd_devices.count; i++) {
		uint64_t quota = gpd_ledger_headroom(gpd_sessions.ledger, session, i, 0).max;
		uint64_t memory = gpd_devices.all[i].memory;

		if (atomic_load(&session->devices[i].allowed))
			sum += quota < memory ? quota : memory;
	}
	return sum;
}

static bool
query_send(uint64_t session, const struct gpd_ledger_query *query)
{
	return gpd_sessions_notify_supervisor(GPD_CHANNEL_QUERY, 0, session, query,
					      sizeof(*query)) == 0;
}

static const char no_memory[] = "the daemon has no memory for another session";

static const char no_descriptor[] = "the daemon has no descriptor left for another session";

static void
report_not_opened(uint64_t id, const char *reason)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_CLOSED, CUDA_ERROR_SYSTEM_NOT_READY, id,
					     reason, strlen(reason));
}

static void
open_session(const struct gpd_channel_message *message)
{
	const struct gpd_channel_open *open = message->data;
	struct gpd_range window = { 0 };
	struct gpd_session *session = NULL;
	struct gp_bytes known = { 0 };

	if (open->entry >= GPD_LEDGER_SESSIONS)
		return;
	/* Without its part the session has no log budget. */
	if (!gpd_ledger_attach_session(gpd_sessions.ledger, open->entry, message->fd)) {
		report_not_opened(message->header.session,
				  message->fd < 0 ? no_descriptor : no_memory);
		return;
	}
	if (gpd_window_acquire(open->window_size, session_get_memory_max(open->entry), open->avoid,
			       open->avoid_count, &window) == 0 &&
	    !(session = gpd_session_open(message->header.session, open, &window))) {
		gpd_window_release(&window);
		report_not_opened(message->header.session, no_memory);
		return;
	}
	if (session)
		known = gpd_preload_create_all(session, open->program);
	reply_opened(message->header.session, &window, session, known);
	free((void *)known.data);
	if (!session)
		gpd_retirement_check_idle();
}

/* Assigns another window to a session whose lane 0 has not arrived. */
static void
move_session(const struct gpd_channel_message *message)
{
	const struct gpd_channel_open *open = message->data;
	struct gpd_range window = { 0 }, old;
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_sessions.lock);
	session = gpd_sessions_find_locked(message->header.session);
	if (session && gpd_session_is(session, GPD_SESSION_OPENED) &&
	    gpd_window_acquire(open->window_size,
			       session_get_memory_max(gpd_ledger_index(gpd_sessions.ledger,
								       session->account.entry)),
			       open->avoid, open->avoid_count, &window) == 0) {
		old = (struct gpd_range){ session->window_base, session->window_size };
		session->window_base = window.address;
		session->window_size = window.size;
		gpd_window_release(&old);
	}
	pthread_mutex_unlock(&gpd_sessions.lock);
	reply_opened(message->header.session, &window, NULL, (struct gp_bytes){ 0 });
}

static void
follow_shares(const struct gpd_channel_message *message)
{
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_sessions.lock);
	session = gpd_sessions_find_locked(message->header.session);
	if (session)
		gpd_session_follow_ledger(session);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

static void
close_session(const struct gpd_channel_message *message)
{
	struct gpd_session *session;
	char reason[256];

	gpd_channel_text(message, reason, sizeof(reason));
	pthread_mutex_lock(&gpd_sessions.lock);
	session = gpd_sessions_find_locked(message->header.session);
	if (session && !gpd_session_is(session, GPD_SESSION_OPENED)) {
		if (!message->header.result)
			atomic_store(&session->client_is_gone, true);
		gpd_session_stop(session, reason);
		session = NULL;
	}
	/* Without a lane no other thread knows the session. */
	if (session)
		gpd_sessions_remove_locked(session);
	pthread_mutex_unlock(&gpd_sessions.lock);
	if (session)
		gpd_session_discard(session, CUDA_SUCCESS, reason);
}

static void
recall_all(void)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
		if (atomic_load(&s->account.entry->cache_state) == GPD_CACHE_RECALLED)
			gpd_session_wake(s);
	}
	pthread_mutex_unlock(&gpd_sessions.lock);
}

static void
sessions_stop_all(const char *reason)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
		if (!gpd_session_is(s, GPD_SESSION_OPENED))
			gpd_session_stop(s, reason);
	}
	pthread_mutex_unlock(&gpd_sessions.lock);
}

/* A client that keeps its descriptors would otherwise keep the pages. */
static void
shared_memory_revoke(void)
{
	gpd_host_arena_empty_all();
	gp_shm_discard_all();
}

static void
worker_exit(void)
{
	if (atomic_load(&gpd_sessions.count) == 0) {
		gpd_image_cache_stop();
#ifdef __SANITIZE_ADDRESS__
		__lsan_do_leak_check();
#endif
	}
	gpd_sessions_exit();
}

static void
place_answered(const struct gpd_channel_message *message)
{
	uint32_t bit;

	if (message->header.result < 0 || message->header.result >= GPD_LEDGER_DEVICES)
		return;
	bit = UINT32_C(1) << message->header.result;
	if (message->header.session)
		atomic_fetch_or(&places.granted, bit);
	atomic_fetch_or(&places.answered, bit);
}

static void
message_handle(struct gpd_channel_message *message)
{
	bool has_open = message->size >= sizeof(struct gpd_channel_open);

	switch (message->header.type) {
	case GPD_CHANNEL_OPEN:
		if (has_open)
			open_session(message);
		break;
	case GPD_CHANNEL_MOVE_WINDOW:
		if (has_open)
			move_session(message);
		break;
	case GPD_CHANNEL_LANE:
	case GPD_CHANNEL_DATA_LANE:
		gpd_lane_accept(message);
		break;
	case GPD_CHANNEL_CLOSE:
		close_session(message);
		break;
	case GPD_CHANNEL_SMS_CHANGED:
		follow_shares(message);
		break;
	case GPD_CHANNEL_RECALL:
		recall_all();
		break;
	case GPD_CHANNEL_RETIRE:
		gpd_retirement_start();
		break;
	case GPD_CHANNEL_PING:
		(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_PONG, 0, 0, NULL, 0);
		break;
	case GPD_CHANNEL_PLACE:
		place_answered(message);
		break;
	case GPD_CHANNEL_STOP:
		sessions_stop_all("the daemon is stopping");
		for (int i = 0; i < 200 && atomic_load(&gpd_sessions.count); i++)
			gp_sleep_ns(UINT64_C(10000000));
		worker_exit();
	}
}

/* result: of the driver, if it is the reason; else 0. */
static int
refuse_to_start(CUresult result, const char *error)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_FAILED, (int)result, 0, error,
					     strlen(error));
	return 1;
}

static void
report_context(int ordinal, const struct gpd_channel_context *context)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_CONTEXT, ordinal, 0, context,
					     sizeof(*context));
}

/* A device's lock serializes the requests for it (gpd_device_enter()). */
static CUresult
request_place(int ordinal)
{
	uint32_t bit = UINT32_C(1) << ordinal;

	atomic_fetch_and(&places.answered, ~bit);
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_PLACE, ordinal, 0, NULL, 0);
	for (int i = 0; i < PLACE_WAIT_MS && !(atomic_load(&places.answered) & bit); i++)
		gp_sleep_ns(UINT64_C(1000000));
	return atomic_load(&places.granted) & bit ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
may_create_context(int ordinal)
{
	if (atomic_load(&gpd_sessions.ledger->sick[ordinal]))
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	return atomic_load(&places.granted) >> ordinal & 1 ? CUDA_SUCCESS : request_place(ordinal);
}

static const struct gpd_device_hooks device_hooks = {
	.may_create = may_create_context,
	.report = report_context,
	.complete = gpd_stream_pool_start,
};

int
gpd_worker_run(const struct gpd_worker_options *options)
{
	struct gpd_channel_message message;
	char error[1024] = "";
	CUresult result;
	uint16_t rdma_port = 0;
	void *snapshot = NULL;
	size_t snapshot_size = 0;
	int r;

	/* A worker must not outlive its supervisor, which handles the signals. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "gpupoold-worker", 0, 0, 0);
	if (gpd_channel_init(&gpd_sessions.channel, options->fd))
		return 1;
	/* With one arena per thread, memory that ended sessions have used would stay allocated. */
	(void)mallopt(M_ARENA_MAX, ARENAS);
	/* With a sanitizer's malloc(), this first use of the C library's own one initializes it,
	 * which two threads must not do at once. */
	(void)malloc_trim(0);
	gpd_sessions.before_exit = shared_memory_revoke;
	gpd_sessions.cpus = (int)gp_machine_processors("");
	gpd_sessions.ledger = gpd_ledger_attach(options->ledger_fd, query_send);
	if (!gpd_sessions.ledger)
		return refuse_to_start(CUDA_SUCCESS, "the ledger cannot be mapped");
	gpd_log_budget_set_ledger(gpd_sessions.ledger);
	if (gpd_driver_stderr_start(gpd_running_work_describe))
		return refuse_to_start(CUDA_SUCCESS, "no pipe for standard error");
	if (gpd_print_start())
		return refuse_to_start(CUDA_SUCCESS, "no pipe for the output of kernels");
	gpd_image_cache_start(NULL, NULL);
	gpd_window_separate_driver();
	atomic_store(&places.granted, options->devices->contexts);
	result = gpd_devices_start(options->driver, options->software, options->connections,
				   options->devices, &device_hooks, error, sizeof(error));
	if (result != CUDA_SUCCESS)
		return refuse_to_start(result, error);
	if (gpd_staging_start(0))
		return refuse_to_start(CUDA_SUCCESS, "no pinned memory for copies");
	if (options->rdma)
		gpd_gpudirect_memory_start(options->peer_memory);
	if ((options->rdma &&
	     gpd_lane_rdma_start(options->rdma, &rdma_port, error, sizeof(error))) ||
	    !gpd_snapshot_pack(rdma_port, &snapshot, &snapshot_size, error, sizeof(error)))
		return refuse_to_start(CUDA_SUCCESS, error);
	r = gpd_syscall_filter_install(options->syscall_filter);
	if (r)
		gpd_warning("worker without a filter of system calls: %s", strerror(-r));
	if (gpd_sessions_notify_supervisor(GPD_CHANNEL_READY, 0, 0, snapshot, snapshot_size))
		return 1;
	free(snapshot);
	while (gpd_channel_recv(&gpd_sessions.channel, true, &message) == 0)
		message_handle(&message);
	/* The supervisor and the clients' sessions have ended. Programs keep the shared memory,
	 * because there is no time to copy it. */
	_exit(0);
}
