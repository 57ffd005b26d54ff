/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/init.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/api/device_state.h"
#include "client/base/config.h"
#include "client/base/error.h"
#include "client/base/error_names.h"
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/base/trace.h"
#include "client/connect/connect.h"
#include "client/connect/window.h"
#include "client/context/device.h"
#include "client/context/fence.h"
#include "client/context/lifecycle.h"
#include "client/entry/context_parts.h"
#include "client/entry/entry.h"
#include "client/entry/export_table.h"
#include "client/entry/passthrough.h"
#include "client/entry/proc_address.h"
#include "client/guard/guard.h"
#include "client/managed/managed_variable.h"
#include "client/module/image_preload.h"
#include "client/pages/pages.h"
#include "client/session/lane.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"
#include "client/trace/tracer.h"
#include "gpc_calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Timeout at exit for sending the requests that are already queued. */
#define EXIT_MS 2000
/* cuDriverGetVersion, cuInit and the runtimes of several libraries try one after the other; after a
 * failure the daemon is not contacted again for this long. */
#define RETRY_NS 2000000000

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static bool forked; /* this process is the child of one that had called cuInit */

/* A daemon and the devices that REMOTE_GPU requests of it. */
struct daemon {
	struct gp_url url;
	int32_t devices[GPC_DEVICES_MAX]; /* in the order of REMOTE_GPU */
	int device_count;                 /* 0: all */
	struct gpc_link link;
	struct gpc_session *session;
};

/* The parsed list of REMOTE_GPU, grouped by daemon: each daemon gets one session, however many of
 * the URLs name it. */
struct daemons {
	struct gp_url urls[GPC_DEVICES_MAX];
	int url_count;
	struct daemon daemons[GPC_SESSIONS_MAX];
	int count;
};

static bool
daemon_equals(const struct gp_url *a, const struct gp_url *b)
{
	return strcmp(a->scheme, b->scheme) == 0 && strcmp(a->host, b->host) == 0 &&
	       a->port == b->port;
}

static struct daemon *
daemon_find(struct daemons *all, const struct gp_url *url)
{
	for (int i = 0; i < all->count; i++) {
		if (daemon_equals(&all->daemons[i].url, url))
			return &all->daemons[i];
	}
	return NULL;
}

/* Returns the device's index among the devices requested of the daemon, or -1 if it is not
 * requested. */
static int
daemon_get_device_index(const struct daemon *daemon, int device)
{
	for (int i = 0; i < daemon->device_count; i++) {
		if (daemon->devices[i] == device)
			return i;
	}
	return -1;
}

static int
daemons_parse(struct daemons *all, char *error, size_t error_size)
{
	char text[GP_URL_TEXT_MAX];
	int r = gpc_config_daemons(all->urls, GPC_DEVICES_MAX, &all->url_count, error, error_size);

	for (int i = 0; r == 0 && i < all->url_count; i++) {
		const struct gp_url *url = &all->urls[i];
		struct daemon *daemon = daemon_find(all, url);
		bool known = daemon != NULL;

		gp_url_format(url, text, sizeof(text));
		if (!known && all->count == GPC_SESSIONS_MAX) {
			(void)snprintf(error, error_size, "%s: more than %d daemons", text,
				       GPC_SESSIONS_MAX);
			return GP_E_INVALID;
		}
		if (known && (daemon->device_count == 0 || url->device == GP_URL_ANY_DEVICE ||
			      daemon_get_device_index(daemon, url->device) >= 0)) {
			(void)snprintf(error, error_size, "%s is named twice", text);
			return GP_E_INVALID;
		}
		if (!known) {
			daemon = &all->daemons[all->count++];
			daemon->url = *url;
		}
		if (url->device != GP_URL_ANY_DEVICE)
			daemon->devices[daemon->device_count++] = url->device;
	}
	return r;
}

static int
daemon_open(struct daemon *daemon)
{
	struct gpc_lanes_config source = { 0 };
	char error[640];
	int r = gpc_link_open_retrying(&daemon->url, daemon->devices, daemon->device_count,
				       &daemon->link, error, sizeof(error));

	if (r != 0) {
		gpc_log_always("%s", error);
		return r;
	}
	r = gpc_session_create(daemon->link.lane, daemon->link.control, &daemon->link.facts,
			       daemon->link.max_outstanding, &daemon->session);
	if (r != 0) {
		gpc_log_always("cannot set up a session: %s", strerror(-r));
		gpc_window_release(daemon->link.facts.window_base, daemon->link.facts.window_size);
		gpc_link_fini(&daemon->link);
		return r;
	}
	memcpy(source.ticket, daemon->link.welcome->welcome->ticket.data, sizeof(source.ticket));
	source.url = daemon->link.lanes_url;
	source.max = daemon->link.lanes;
	source.exact = daemon->link.lanes_exact;
	source.compression = daemon->link.compression;
	source.round_trip_ns = daemon->link.round_trip_ns;
	gpc_log(GPC_LOG_INFO, "%s: session %llu, driver %s", gp_conn_peer(daemon->link.control),
		(unsigned long long)daemon->link.facts.session_id,
		daemon->link.welcome->welcome->driver_name);
	gpc_lanes_configure(daemon->session, &source);
	gpc_image_preload_parse(daemon->session, daemon->link.welcome->welcome);
	/* The session owns both connections from here. */
	daemon->link.lane = daemon->link.control = NULL;
	return 0;
}

/* Returns the daemon without a session whose address sorts first. The order is independent of the
 * list, so that two programs that wait for session slots of the same daemons cannot deadlock. */
static struct daemon *
daemons_get_next(struct daemons *all)
{
	char text[GP_URL_TEXT_MAX], least[GP_URL_TEXT_MAX];
	struct daemon *found = NULL;

	for (int i = 0; i < all->count; i++) {
		if (all->daemons[i].session)
			continue;
		gp_url_format(&all->daemons[i].url, text, sizeof(text));
		if (found && strcmp(text, least) > 0)
			continue;
		found = &all->daemons[i];
		memcpy(least, text, sizeof(least));
	}
	return found;
}

/* Creates all devices in the order of the list. */
static int
daemons_create_devices(struct daemons *all)
{
	struct gpc_device_source sources[GPC_DEVICES_MAX];
	int count = 0;

	for (int i = 0; i < all->url_count; i++) {
		const struct gp_url *url = &all->urls[i];
		struct daemon *daemon = daemon_find(all, url);
		const Gpupool__Welcome *welcome = daemon->link.welcome->welcome;
		size_t first = 0, end = welcome->n_devices;

		if (url->device != GP_URL_ANY_DEVICE) {
			first = (size_t)daemon_get_device_index(daemon, url->device);
			end = first + 1;
		}
		for (size_t k = first; k < end && count < GPC_DEVICES_MAX; k++)
			sources[count++] = (struct gpc_device_source){
				.device = welcome->devices[k],
				.session = daemon->session,
				.daemon = (int)(daemon - all->daemons),
				.granted = k < welcome->n_granted ? welcome->granted[k] : 0,
			};
	}
	return gpc_devices_create(sources, count);
}

static void
daemons_close(struct daemons *all)
{
	for (int i = 0; i < all->count; i++) {
		struct daemon *daemon = &all->daemons[i];

		if (!daemon->session)
			continue;
		gpc_window_release(daemon->link.facts.window_base, daemon->link.facts.window_size);
		gpc_session_close(daemon->session, 0);
		gpc_session_destroy(daemon->session);
	}
}

static int
daemons_open(struct daemons *all)
{
	char error[640];
	int r = daemons_parse(all, error, sizeof(error));

	if (r != 0)
		gpc_log_always("%s", error);
	for (int i = 0; r == 0 && i < all->count; i++)
		r = daemon_open(daemons_get_next(all));
	if (r == 0) {
		r = daemons_create_devices(all);
		if (r != 0)
			gpc_log_always("cannot set up a session: %s", strerror(-r));
	}
	if (r != 0)
		daemons_close(all);
	for (int i = 0; i < all->count; i++) {
		if (r == 0)
			gpc_session_add(all->daemons[i].session);
		if (all->daemons[i].session)
			gpc_link_fini(&all->daemons[i].link);
	}
	return r;
}

static int
session_open(void)
{
	struct daemons *all = calloc(1, sizeof(*all));
	int r = all ? daemons_open(all) : -ENOMEM;

	free(all);
	return r;
}

CUresult
gpc_session_open(void)
{
	static uint64_t last_failure;
	static int last_result;
	int r = 0;

	(void)pthread_mutex_lock(&open_lock);
	if (!gpc_session_get()) {
		gpc_tracer_start();
		if (last_failure && gp_now_ns() - last_failure < RETRY_NS) {
			r = last_result;
		} else {
			r = session_open();
			if (r == 0)
				gpc_tracer_await_daemons();
			last_failure = r == 0 ? 0 : gp_now_ns();
			last_result = r;
		}
	}
	(void)pthread_mutex_unlock(&open_lock);
	return gpc_error_to_cuda(r);
}

/* There is neither a pool nor a driver: the user probably did not set REMOTE_GPU. */
static void
report_no_gpu(void)
{
	char name[32];

	if (gpc_config_find_misspelled(name, sizeof(name)))
		gpc_log_warn("no GPU: %s is set; did you mean REMOTE_GPU?", name);
	else
		gpc_log_warn("no GPU: REMOTE_GPU is not set, and this machine has no CUDA driver; "
			     "use \"gpupool run\", or set REMOTE_GPU=tls://HOST");
}

CUresult
gpc_cuInit(unsigned int Flags)
{
	CUresult result = gpc_lifecycle_check();

	if (Flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_ERROR_NOT_INITIALIZED || forked)
		return result;
	gpc_config_check_log();
	if (!gpc_config_has_remote()) {
		report_no_gpu();
		return GPC_ERROR_NO_DRIVER;
	}
	result = gpc_session_open();
	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_device_count() == 0)
		return CUDA_ERROR_NO_DEVICE;
	gpc_unsupported_injection();
	gpc_sync_watch_exit();
	atomic_store_explicit(&gpc_lifecycle, CUDA_SUCCESS, memory_order_release);
	return CUDA_SUCCESS;
}

bool
gpc_is_initialized(void)
{
	return gpc_lifecycle_check() == CUDA_SUCCESS;
}

int
gpc_driver_version(void)
{
	int version = CUDA_VERSION;

	/* Without a session, returns the version this library was built for; cuInit will report the
	 * problem. */
	if (!gpc_session_get() &&
	    (forked || !gpc_config_has_remote() || gpc_session_open() != CUDA_SUCCESS))
		return version;
	for (int i = 0; i < gpc_session_count(); i++) {
		int one = gpc_session_facts(gpc_session_at(i))->driver_version;

		if (one < version)
			version = one;
	}
	return version;
}

CUresult
gpc_cuDriverGetVersion(int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = gpc_driver_version();
	return CUDA_SUCCESS;
}

CUresult
gpc_cuGetErrorString(CUresult error, const char **pStr)
{
	return pStr ? gpc_error_string(error, pStr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuGetErrorName(CUresult error, const char **pStr)
{
	return pStr ? gpc_error_name(error, pStr) : CUDA_ERROR_INVALID_VALUE;
}

/* cuGetProcAddress returns this library's functions; the daemon's driver does not matter. */

CUresult
gpc_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	return gpc_proc_address_v1(symbol, pfn, cudaVersion, flags, CUDA_VERSION);
}

CUresult
gpc_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
			CUdriverProcAddressQueryResult *symbolStatus)
{
	return gpc_proc_address_v2(symbol, pfn, cudaVersion, flags, CUDA_VERSION, symbolStatus);
}

/* The table's functions enter the call guard, because a signal may interrupt libnvidia-ml.so.1
 * too. */
static CUresult
nvml_table_open(int *count_p)
{
	CUresult result;

	*count_p = 0;
	if (!gpc_guard_enter())
		return CUDA_ERROR_NOT_PERMITTED;
	result = gpc_session_open();
	if (result == CUDA_SUCCESS)
		*count_p = gpc_any_device_count();
	gpc_guard_leave();
	return result;
}

static CUresult
nvml_table_get_state(int index, unsigned int parts, struct gp_device_state *state)
{
	CUresult result;

	if (!gpc_guard_enter())
		return CUDA_ERROR_NOT_PERMITTED;
	result = gpc_any_device_get_state(index, parts, state);
	gpc_guard_leave();
	return result;
}

static const CUuuid nvml_table_id = GPC_NVML_TABLE_ID;
static const struct gpc_nvml_table nvml_table = {
	.size = sizeof(nvml_table),
	.open = nvml_table_open,
	.device = gpc_any_device_describe,
	.state = nvml_table_get_state,
	.driver_version = gpc_driver_version,
	.has_peer_access = gpc_any_device_has_peer_access,
};

CUresult
gpc_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	CUresult result;

	if (ppExportTable && pExportTableId &&
	    memcmp(pExportTableId, &gpc_passthrough_table_id, sizeof(gpc_passthrough_table_id)) ==
		    0) {
		*ppExportTable = &gpc_passthrough_table_id;
		return CUDA_SUCCESS;
	}
	if (ppExportTable && pExportTableId &&
	    memcmp(pExportTableId, &nvml_table_id, sizeof(nvml_table_id)) == 0) {
		*ppExportTable = &nvml_table;
		return CUDA_SUCCESS;
	}
	result = gpc_export_table_get(ppExportTable, pExportTableId);
	if (result != CUDA_SUCCESS && pExportTableId)
		gpc_unsupported_table(pExportTableId);
	return result;
}

/* The connections belong to the parent. As with NVIDIA's driver, the child of a process that has
 * called cuInit cannot use CUDA; if the parent had only queried the version, the child starts
 * afresh. */
static void
after_fork_in_child(void)
{
	/* A call that a signal handler has interrupted leaves inconsistent state, so a fresh start
	 * is impossible. */
	bool initialized = gpc_lifecycle_check() == CUDA_SUCCESS || gpc_guard_is_inside();
	int count = gpc_session_count();

	gpc_pages_after_fork(true);
	(void)pthread_mutex_init(&open_lock, NULL);
	gpc_tracer_after_fork();
	for (int i = 0; i < count; i++) {
		const struct gpc_session_facts *facts = gpc_session_facts(gpc_session_at(i));

		gpc_session_abandon(gpc_session_at(i));
		if (!initialized)
			gpc_window_release(facts->window_base, facts->window_size);
	}
	if (initialized) {
		forked = true;
		atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	} else if (count) {
		gpc_devices_destroy();
		gpc_session_set(NULL);
	}
}

static void
after_fork(void)
{
	gpc_pages_after_fork(false);
}

__attribute__((constructor)) static void
on_load(void)
{
	gpc_entries_fill(gpc_trace_init());
	gpc_context_parts_set();
	gpc_image_set_variable_calls(&gpc_managed_variable_calls);
	gpc_fence_set_idle_check(gpc_stream_session_is_idle);
	/* If neither is available, the program may still set REMOTE_GPU itself before cuInit. */
	if (gpc_config_has_remote() || !gpc_passthrough_start())
		(void)pthread_atfork(gpc_pages_before_fork, after_fork, after_fork_in_child);
}

/* Runs after the exit handlers of the program and of libraries loaded later, as those may still
 * call CUDA. A signal handler that has interrupted a call must not wait for a lock of that call: in
 * that case the kernel closes the connections, and work in flight ends, as it does without a remote
 * GPU. */
__attribute__((destructor)) static void
at_exit(void)
{
	int64_t deadline = gp_deadline_ms(EXIT_MS);

	atomic_store(&gpc_lifecycle, CUDA_ERROR_DEINITIALIZED);
	if (forked || gpc_guard_is_inside())
		return;
	gpc_tracer_stop();
	for (int i = 0; i < gpc_session_count(); i++)
		gpc_session_close(gpc_session_at(i), gp_remaining_ms(deadline));
	gpc_tracer_close();
	if (gpc_session_count() && gpc_log_is_enabled(GPC_LOG_STATS))
		gpc_stats_print(stderr);
}
