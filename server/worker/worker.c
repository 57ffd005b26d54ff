/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/worker.h"

#include "base/clock.h"
#include "protocol/control.h"
#include "server/common/base/log.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/accept.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/driver_stderr.h"
#include "server/worker/device/partition.h"
#include "server/worker/device/peer_memory.h"
#include "server/worker/device/snapshot.h"
#include "server/worker/device/wait_page.h"
#include "server/worker/device/window.h"
#include "server/worker/image/library.h"
#include "server/worker/image/preload.h"
#include "server/worker/lane_rdma.h"
#include "server/worker/retire.h"
#include "server/worker/running_work.h"
#include "server/worker/session/print.h"
#include "server/worker/session/session.h"
#include "server/worker/session/wait.h"
#include "transport/transport.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ARENAS 4

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

/* The driver makes these once and keeps them; the first kernel that prints or allocates fixes
 * their size for everybody, so they are made large enough for most programs at once. */
#define PRINT_SIZE ((size_t)16 << 20)
#define HEAP_SIZE ((size_t)128 << 20)

struct gpd_worker gpd_worker = { .lock = PTHREAD_MUTEX_INITIALIZER };

static __thread int current_device = -1;

struct gpd_device *
gpd_device_get(int ordinal)
{
	if (ordinal < 0 || ordinal >= gpd_worker.device_count)
		return NULL;
	return &gpd_worker.devices[ordinal];
}

CUresult
gpd_device_enter(int ordinal)
{
	struct gpd_device *device;
	CUresult result;

	if (ordinal == current_device)
		return CUDA_SUCCESS;
	device = gpd_device_get(ordinal);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	result = gpd_driver.cuCtxSetCurrent(device->primary);
	if (result == CUDA_SUCCESS)
		current_device = ordinal;
	return result;
}

static const char *
name_of(CUresult result)
{
	const char *name = NULL;

	(void)gpd_driver.cuGetErrorName(result, &name);
	return name ? name : "unknown error";
}

/* Tenants that are known find the green contexts of their shares made. */
static void
start_partitions(int ordinal)
{
	uint32_t wanted[GPD_LEDGER_TENANTS], granularity;
	unsigned int count = 0;

	gpd_partition_start(ordinal);
	granularity = atomic_load(&gpd_worker.ledger->sm_granularity[ordinal]);
	if (granularity)
		gpd_partition_set_granularity(ordinal, granularity);
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
		const struct gpd_ledger_tenant *tenant = &gpd_worker.ledger->tenants[i];
		uint32_t sms = atomic_load(&tenant->devices[ordinal].sm_wanted);

		if (tenant->name[0] && sms)
			wanted[count++] = sms;
	}
	gpd_partition_make_ahead(ordinal, wanted, count);
}

static CUresult
start_device(int ordinal)
{
	struct gpd_device *device = &gpd_worker.devices[ordinal];
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal },
	};
	const struct {
		CUdevice_attribute attribute;
		int *value;
	} facts[] = {
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &device->major },
		{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &device->minor },
		{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &device->multiprocessors },
		{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
		  &device->threads_per_multiprocessor },
	};
	size_t memory = 0, granularity = 0;
	CUresult result = gpd_driver.cuDeviceGet(&device->device, ordinal);

	pthread_mutex_init(&device->limit_lock, NULL);
	if (result == CUDA_SUCCESS)
		result =
			gpd_driver.cuDevicePrimaryCtxSetFlags_v2(device->device, CU_CTX_SCHED_AUTO);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDevicePrimaryCtxRetain(&device->primary, device->device);
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(ordinal);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDeviceTotalMem_v2(&memory, device->device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemGetAllocationGranularity(&granularity, &prop,
								  CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (result != CUDA_SUCCESS)
		return result;
	device->memory = memory;
	atomic_store(&gpd_worker.ledger->device_memory[ordinal], memory);
	device->granularity = granularity;
	if (granularity > gpd_worker.granularity)
		gpd_worker.granularity = granularity;
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		(void)gpd_driver.cuDeviceGetAttribute(facts[i].value, facts[i].attribute,
						      device->device);
	(void)gpd_driver.cuCtxGetStreamPriorityRange(&device->priority_least,
						     &device->priority_greatest);
	for (int i = 0; i < CU_LIMIT_MAX; i++) {
		size_t value;

		device->default_limits[i] = GP_LIMIT_UNSUPPORTED;
		if (gpd_driver.cuCtxGetLimit(&value, (CUlimit)i) == CUDA_SUCCESS)
			device->default_limits[i] = value;
	}
	(void)gpd_driver.cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, PRINT_SIZE);
	(void)gpd_driver.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, HEAP_SIZE);
	for (int i = 0; i < CU_LIMIT_MAX; i++)
		(void)gpd_driver.cuCtxGetLimit(&device->limits[i], (CUlimit)i);
	start_partitions(ordinal);
	return CUDA_SUCCESS;
}

static int
start_driver(const char *path, char *error, size_t size)
{
	int count = 0;
	CUresult result;

	/* The daemon's driver is a real one, even if a client library is found first. */
	(void)unsetenv("REMOTE_GPU");
	(void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	if (gpd_driver_open(path, error, size))
		return -1;
	result = gpd_driver.cuInit(0);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDeviceGetCount(&count);
	if (result == CUDA_SUCCESS && count == 0)
		result = CUDA_ERROR_NO_DEVICE;
	if (result != CUDA_SUCCESS) {
		snprintf(error, size, "%.512s: no usable device: %s", gpd_driver.path,
			 name_of(result));
		return -1;
	}
	if (count > GPD_DEVICES_MAX)
		count = GPD_DEVICES_MAX;
	gpd_worker.software = gpd_driver.software;
	gpd_worker.device_count = count;
	for (int i = 0; i < count; i++) {
		result = start_device(i);
		if (result != CUDA_SUCCESS) {
			snprintf(error, size, "%.512s: device %d cannot be used: %s",
				 gpd_driver.path, i, name_of(result));
			return -1;
		}
	}
	result = gpd_device_enter(0);
	if (result == CUDA_SUCCESS)
		result = gpd_wait_page_setup();
	if (result == CUDA_SUCCESS)
		result = gpd_staging_start(0);
	if (result != CUDA_SUCCESS) {
		snprintf(error, size, "%.512s: no pinned memory: %s", gpd_driver.path,
			 name_of(result));
		return -1;
	}
	return 0;
}

struct gpd_session *
gpd_worker_find_locked(uint64_t id)
{
	struct gpd_session *session = gpd_worker.sessions;

	while (session && session->id != id)
		session = session->next;
	return session;
}

static void
reply_opened(uint64_t id, const struct gpd_range *window)
{
	union {
		struct gpd_channel_opened opened;
		char room[sizeof(struct gpd_channel_opened) + GPD_DEVICES_MAX * sizeof(uint64_t)];
	} reply;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_OPENED, .session = id };

	memset(&reply, 0, sizeof(reply));
	reply.opened.window = *window;
	reply.opened.device_count = (uint32_t)gpd_worker.device_count;
	for (int i = 0; i < gpd_worker.device_count; i++) {
		size_t free_memory = 0, total = 0;

		if (gpd_device_enter(i) == CUDA_SUCCESS)
			(void)gpd_driver.cuMemGetInfo_v2(&free_memory, &total);
		reply.opened.memory_free[i] = free_memory;
	}
	(void)gpd_channel_send(&gpd_worker.channel, &header, &reply,
			       sizeof(struct gpd_channel_opened) +
				       (size_t)gpd_worker.device_count * sizeof(uint64_t),
			       -1);
}

/* What the session may have on all its devices together. */
static uint64_t
memory_of(uint32_t line)
{
	const struct gpd_ledger_session *session = &gpd_worker.ledger->sessions[line];
	uint64_t sum = 0;

	for (int i = 0; i < gpd_worker.device_count; i++) {
		uint64_t quota = gpd_ledger_room(gpd_worker.ledger, session, i).max;
		uint64_t memory = gpd_worker.devices[i].memory;

		if (atomic_load(&session->devices[i].allowed))
			sum += quota < memory ? quota : memory;
	}
	return sum;
}

static void
open_session(const struct gpd_channel_message *message)
{
	const struct gpd_channel_open *open = message->data;
	struct gpd_channel_header closed = {
		.type = GPD_CHANNEL_CLOSED,
		.result = CUDA_ERROR_SYSTEM_NOT_READY,
		.session = message->header.session,
	};
	static const char reason[] = "the daemon has no memory for another session";
	struct gpd_range window = { 0 };

	if (open->line >= GPD_LEDGER_SESSIONS)
		return;
	if (gpd_window_take(open->window_size, memory_of(open->line), open->avoid,
			    open->avoid_count, &window) == 0 &&
	    !gpd_session_open(message->header.session, open, &window)) {
		gpd_window_give(&window);
		gpd_log_budget_log(gpd_worker.ledger->sessions[open->line].log_budget,
				   GPD_LOG_WARNING, "session %llu (%.*s): not opened: %s",
				   (unsigned long long)message->header.session,
				   (int)sizeof(open->peer), open->peer, reason);
		(void)gpd_channel_send(&gpd_worker.channel, &closed, reason, strlen(reason), -1);
		return;
	}
	reply_opened(message->header.session, &window);
}

/* Another window for a session whose lane has not come. */
static void
move_session(const struct gpd_channel_message *message)
{
	const struct gpd_channel_open *open = message->data;
	struct gpd_range window = { 0 }, old;
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_worker.lock);
	session = gpd_worker_find_locked(message->header.session);
	if (session && !session->conn &&
	    gpd_window_take(open->window_size,
			    memory_of(gpd_ledger_index(gpd_worker.ledger, session->account.line)),
			    open->avoid, open->avoid_count, &window) == 0) {
		old = (struct gpd_range){ session->window_base, session->window_size };
		session->window_base = window.address;
		session->window_size = window.size;
		gpd_window_give(&old);
	}
	pthread_mutex_unlock(&gpd_worker.lock);
	reply_opened(message->header.session, &window);
}

static void
follow_shares(const struct gpd_channel_message *message)
{
	struct gpd_session *session;

	pthread_mutex_lock(&gpd_worker.lock);
	session = gpd_worker_find_locked(message->header.session);
	if (session)
		gpd_session_follow_ledger(session);
	pthread_mutex_unlock(&gpd_worker.lock);
}

static void
close_session(const struct gpd_channel_message *message)
{
	struct gpd_session *session;
	char reason[256];

	gpd_channel_text(message, reason, sizeof(reason));
	pthread_mutex_lock(&gpd_worker.lock);
	session = gpd_worker_find_locked(message->header.session);
	if (session && session->conn) {
		gpd_session_end(session, reason);
		session = NULL;
	}
	pthread_mutex_unlock(&gpd_worker.lock);
	/* Without a lane only this thread knows it. */
	if (session)
		gpd_session_discard(session, CUDA_SUCCESS, reason);
}

static void
end_all(const char *reason)
{
	pthread_mutex_lock(&gpd_worker.lock);
	for (struct gpd_session *s = gpd_worker.sessions; s; s = s->next) {
		if (s->conn)
			gpd_session_end(s, reason);
	}
	pthread_mutex_unlock(&gpd_worker.lock);
}

bool
gpd_worker_may_spin(void)
{
	int cpus = gpd_worker.cpus;

	/* One may where there are two: whoever is answered, on this machine or not, waits for it.
	 */
	if (cpus < 4)
		return cpus > 1 && atomic_load(&gpd_worker.session_count) <= 1;
	return atomic_load(&gpd_worker.session_count) <= cpus / 4;
}

static void
leave(void)
{
	if (atomic_load(&gpd_worker.session_count) == 0) {
		gpd_image_cache_stop();
#ifdef __SANITIZE_ADDRESS__
		__lsan_do_leak_check();
#endif
	}
	/* Not exit(): the driver's and other threads may still be at work. */
	_exit(0);
}

static void
handle(struct gpd_channel_message *message)
{
	bool has_open = message->size >= sizeof(struct gpd_channel_open);

	switch (message->header.type) {
	case GPD_CHANNEL_OPEN:
		if (has_open)
			open_session(message);
		break;
	case GPD_CHANNEL_REWINDOW:
		if (has_open)
			move_session(message);
		break;
	case GPD_CHANNEL_LANE:
	case GPD_CHANNEL_DATA_LANE:
		gpd_accept(message);
		break;
	case GPD_CHANNEL_CLOSE:
		close_session(message);
		break;
	case GPD_CHANNEL_SHARES:
		follow_shares(message);
		break;
	case GPD_CHANNEL_RETIRE:
		gpd_retire();
		break;
	case GPD_CHANNEL_STOP:
		end_all("the daemon stops");
		for (int i = 0; i < 100 && atomic_load(&gpd_worker.session_count); i++)
			gp_nap(UINT64_C(10000000));
		leave();
	}
}

static int
refuse_to_start(const char *error)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_FAILED };

	(void)gpd_channel_send(&gpd_worker.channel, &header, error, strlen(error), -1);
	return 1;
}

/* 0: the supervisor or a handshake has something for the main thread. */
static int
wait_for_work(void)
{
	struct pollfd fds[2] = {
		{ .fd = gpd_worker.channel.fd, .events = POLLIN },
		{ .fd = gpd_accept_fd(), .events = POLLIN },
	};
	int r;

	do
		r = poll(fds, 2, -1);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int
gpd_worker_run(const struct gpd_worker_options *options)
{
	struct gpd_channel_header ready = { .type = GPD_CHANNEL_READY };
	struct gpd_channel_message message;
	int r;
	char error[1024] = "";
	void *snapshot = NULL;
	size_t snapshot_size = 0;

	/* No worker outlives its supervisor; signals are the supervisor's to see. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, "gpupoold-worker", 0, 0, 0);
	if (gpd_channel_init(&gpd_worker.channel, options->fd))
		return 1;
	/* One arena for each of many threads would keep what their sessions once used. */
	(void)mallopt(M_ARENA_MAX, ARENAS);
	/* Where a sanitizer has taken over malloc(), the first use of the C library's own
	 * initializes it, which two threads must not do at once. */
	(void)malloc_trim(0);
	gpd_worker.cpus = (int)sysconf(_SC_NPROCESSORS_ONLN);
	gpd_worker.ledger = gpd_ledger_attach(options->ledger_fd);
	if (!gpd_worker.ledger)
		return refuse_to_start("the ledger cannot be mapped");
	gpd_log_budget_use(gpd_worker.ledger);
	if (gpd_accept_setup())
		return refuse_to_start("no descriptor for handshakes");
	if (gpd_driver_stderr_start(gpd_running_work_tell))
		return refuse_to_start("no pipe for standard error");
	if (gpd_print_start())
		return refuse_to_start("no pipe for the output of kernels");
	gpd_image_cache_start(NULL, NULL);
	gpd_window_stay_apart();
	if (start_driver(options->driver, error, sizeof(error)))
		return refuse_to_start(error);
	if (options->rdma)
		gpd_peer_memory_start(options->peer_memory);
	if ((options->rdma && gpd_lane_rdma_start(options->rdma, error, sizeof(error))) ||
	    gpd_snapshot_pack(&snapshot, &snapshot_size, error, sizeof(error)))
		return refuse_to_start(error);
	if (gpd_channel_send(&gpd_worker.channel, &ready, snapshot, snapshot_size, -1))
		return 1;
	free(snapshot);
	gpd_preload_idle();
	while (wait_for_work() == 0) {
		gpd_accept_secured();
		while ((r = gpd_channel_recv(&gpd_worker.channel, false, &message)) == 0)
			handle(&message);
		if (r != GP_E_TIMEOUT)
			break;
	}
	/* The supervisor is gone: so are the clients' sessions. */
	_exit(0);
}
