/* SPDX-License-Identifier: Apache-2.0 */
#include "client/init.h"

#include "client/config.h"
#include "client/connect.h"
#include "client/context.h"
#include "client/device.h"
#include "client/error.h"
#include "client/error_names.h"
#include "client/export_table.h"
#include "client/log.h"
#include "client/passthrough.h"
#include "client/proc_address.h"
#include "client/stats.h"
#include "client/thread.h"
#include "client/window.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <string.h>

/* At exit, for what was posted to be sent. */
#define EXIT_MS 2000
/* cuDriverGetVersion, cuInit and the runtimes of several libraries ask one after the other: a
 * daemon that could not be had is not tried again at once. */
#define RETRY_NS 2000000000

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static bool forked; /* from a process that had called cuInit */

static int
open_session(void)
{
	struct gpc_session *session;
	struct gpc_link link;
	char error[640];
	struct gp_url url;
	int r = gpc_config_daemon(&url, error, sizeof(error));

	if (r == 0)
		r = gpc_link_open(&url, &link, error, sizeof(error));
	if (r != 0) {
		gpc_log_always("%s", error);
		return r;
	}
	r = gpc_session_create(link.lane, link.control, &link.facts, link.max_outstanding,
			       &session);
	if (r == 0) {
		gpc_log(GPC_LOG_INFO, "%s: session %llu, driver %s", gp_conn_peer(link.control),
			(unsigned long long)link.facts.session_id,
			link.welcome->welcome->driver_name);
		link.lane = link.control = NULL;
		r = gpc_devices_create(link.welcome->welcome, session);
		if (r == 0) {
			gpc_session_set(session);
		} else {
			gpc_session_close(session, 0);
			gpc_session_destroy(session);
		}
	}
	if (r != 0) {
		gpc_log_always("cannot set up a session: %s", strerror(-r));
		gpc_window_release(link.facts.window_base, link.facts.window_size);
	}
	gpc_link_fini(&link);
	return r;
}

CUresult
gpc_session_open(void)
{
	static int64_t last_failure;
	static int last_result;
	int r = 0;

	(void)pthread_mutex_lock(&open_lock);
	if (!gpc_session_get()) {
		if (last_failure && gpc_now_ns() - last_failure < RETRY_NS) {
			r = last_result;
		} else {
			r = open_session();
			last_failure = r == 0 ? 0 : gpc_now_ns();
			last_result = r;
		}
	}
	(void)pthread_mutex_unlock(&open_lock);
	return gpc_error_cuda(r);
}

CUresult
gpc_cuInit(unsigned int Flags)
{
	CUresult result = gpc_lifecycle_check();

	if (Flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_ERROR_NOT_INITIALIZED || forked)
		return result;
	if (!gpc_config_remote())
		return GPC_ERROR_NO_DRIVER;
	result = gpc_session_open();
	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_device_count() == 0)
		return CUDA_ERROR_NO_DEVICE;
	atomic_store_explicit(&gpc_lifecycle, CUDA_SUCCESS, memory_order_release);
	return CUDA_SUCCESS;
}

bool
gpc_initialized(void)
{
	return gpc_lifecycle_check() == CUDA_SUCCESS;
}

int
gpc_driver_version(void)
{
	/* Without a session, what this library was made for: cuInit will say what is wrong. */
	if (!gpc_session_get() &&
	    (forked || !gpc_config_remote() || gpc_session_open() != CUDA_SUCCESS))
		return CUDA_VERSION;
	return gpc_session_facts(gpc_session_get())->driver_version;
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

/* The functions are those of this library, whatever the daemon's driver has. */

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

CUresult
gpc_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (ppExportTable && pExportTableId &&
	    memcmp(pExportTableId, &gpc_passthrough_mark, sizeof(gpc_passthrough_mark)) == 0) {
		*ppExportTable = &gpc_passthrough_mark;
		return CUDA_SUCCESS;
	}
	return gpc_export_table_get(ppExportTable, pExportTableId);
}

/* No tool can be attached: there is nothing to start or to stop. */

CUresult
gpc_cuProfilerStart(void)
{
	struct gpc_context *context;

	return gpc_enter(&context);
}

CUresult
gpc_cuProfilerStop(void)
{
	struct gpc_context *context;

	return gpc_enter(&context);
}

/* The connections are the parent's.  As with NVIDIA's driver, the child of a process that has
 * called cuInit has no CUDA; if it had only asked for the version, the child begins anew. */
static void
after_fork(void)
{
	struct gpc_session *session = gpc_session_get();

	(void)pthread_mutex_init(&open_lock, NULL);
	if (!session)
		return;
	gpc_session_abandon(session);
	if (gpc_lifecycle_check() == CUDA_SUCCESS) {
		forked = true;
		atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
		return;
	}
	gpc_window_release(gpc_session_facts(session)->window_base,
			   gpc_session_facts(session)->window_size);
	gpc_devices_destroy();
	gpc_session_set(NULL);
}

__attribute__((constructor)) static void
on_load(void)
{
	gpc_entries_fill();
	/* Without either, REMOTE_GPU may still be set by the program itself, before cuInit. */
	if (gpc_config_remote() || !gpc_passthrough_start())
		(void)pthread_atfork(NULL, NULL, after_fork);
}

/* After the exit handlers of the program and of the libraries that were loaded later: theirs may
 * still call. */
__attribute__((destructor)) static void
at_exit(void)
{
	struct gpc_session *session = gpc_session_get();

	atomic_store(&gpc_lifecycle, CUDA_ERROR_DEINITIALIZED);
	if (!session || forked)
		return;
	gpc_session_close(session, EXIT_MS);
	if (gpc_log_wants(GPC_LOG_STATS))
		gpc_stats_print(stderr);
}
