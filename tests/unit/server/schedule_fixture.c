/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/schedule_fixture.h"

#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpu_timestamp.h"
#include "server/worker/device/marker_page.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How far a client may be ahead of the GPU; a driver's queue has a limit, too. */
#define QUEUE_NS (100 * MS)
#define TRIAL_NS SECOND
/* Time that a launch takes in its thread. */
#define LAUNCH_NS (2 * US)
#define STAMPS_MAX 4096

/* A write that is due when the stream reaches it. */
struct stamp {
	uint64_t at_ns;
	void *to;
	bool clock;
};

struct gpu gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };
struct gpd_ledger *ledger;
struct client clients[CLIENTS_MAX];
unsigned int client_count;

static struct stamp
	stamps[STAMPS_MAX]; /* the first gpu.waiting entries are used; guarded by gpu.lock */

static _Atomic bool stopped;

static uint64_t
later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void
run_kernel(struct gpu_stream *stream, uint64_t ns)
{
	pthread_mutex_lock(&gpu.lock);
	stream->end_ns = later(later(now_ns(), stream->end_ns), gpu.free_ns) + ns;
	gpu.free_ns = stream->end_ns;
	pthread_mutex_unlock(&gpu.lock);
}

uint64_t
end_of(struct gpu_stream *stream)
{
	uint64_t end;

	pthread_mutex_lock(&gpu.lock);
	end = stream->end_ns;
	pthread_mutex_unlock(&gpu.lock);
	return end;
}

static void
write_stamp(const struct stamp *stamp)
{
	if (stamp->clock)
		__atomic_store_n((uint64_t *)stamp->to, stamp->at_ns, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)stamp->to, 1, __ATOMIC_RELEASE);
}

/* Called when the clock has advanced: performs the writes that are due. */
static void
write_due(uint64_t now)
{
	int left = 0;

	pthread_mutex_lock(&gpu.lock);
	for (int i = 0; i < gpu.waiting; i++) {
		if (stamps[i].at_ns <= now)
			write_stamp(&stamps[i]);
		else
			stamps[left++] = stamps[i];
	}
	gpu.waiting = left;
	pthread_mutex_unlock(&gpu.lock);
}

static void
add_stamp(CUstream on, void *to, bool clock)
{
	struct gpu_stream *stream = (struct gpu_stream *)on;
	uint64_t now = now_ns();

	pthread_mutex_lock(&gpu.lock);
	assert_true(gpu.waiting < STAMPS_MAX);
	stamps[gpu.waiting] = (struct stamp){ now, to, clock };
	if (stream && stream->end_ns > now)
		stamps[gpu.waiting++].at_ns = stream->end_ns;
	else
		write_stamp(&stamps[gpu.waiting]);
	pthread_mutex_unlock(&gpu.lock);
}

static CUresult
launch_stamp(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	void *to;

	assert_ptr_equal(function, &gpu);
	assert_null(extra);
	if (gpu.refuses)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	memcpy(&to, params[0], sizeof(to));
	gpu.stamps++;
	add_stamp(config->hStream, to, true);
	return CUDA_SUCCESS;
}

static CUresult
write_value(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned int flags)
{
	assert_int_equal(value, 1);
	gpu.marks++;
	add_stamp(stream, (void *)(uintptr_t)to, false);
	return CUDA_SUCCESS;
}

static CUresult
load_library(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
	     unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
	*library = NULL;
	return CUDA_SUCCESS;
}

static CUresult
enumerate(CUkernel *kernels, unsigned int count, CUlibrary library)
{
	kernels[0] = (CUkernel)&gpu;
	return CUDA_SUCCESS;
}

static CUresult
get_function(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

static CUresult
host_alloc(void **memory, size_t size, unsigned int flags)
{
	*memory = aligned_alloc(4096, size);
	return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
host_pointer(CUdeviceptr *device, void *memory, unsigned int flags)
{
	*device = (uintptr_t)memory;
	return CUDA_SUCCESS;
}

static CUresult
event_create(CUevent *event, unsigned int flags)
{
	gpu.events++;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
event_record(CUevent event, CUstream stream)
{
	gpu.events++;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
stream_query(CUstream stream)
{
	gpu.asked_in_vain += (void *)stream == gpu.gone;
	return end_of((struct gpu_stream *)stream) <= now_ns() ? CUDA_SUCCESS
							       : CUDA_ERROR_NOT_READY;
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

static CUresult
error_name(CUresult result, const char **name)
{
	*name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
	return CUDA_SUCCESS;
}

static CUresult
synchronize(void)
{
	return CUDA_SUCCESS;
}

/* The thread that passes turns on lives as long as the process, so the ledger does too. */
static void
make_ledger(void)
{
	int fd;

	ledger = gpd_ledger_create(&fd);
	assert_non_null(ledger);
	(void)close(fd);
	assert_int_equal(gpd_marker_page_setup(), CUDA_SUCCESS);
	virtual_time_watch(write_due);
}

int
schedule_setup(void **state)
{
	gpd_driver = (struct gpd_driver){
		.cuCtxSetCurrent = set_current,
		.cuCtxSynchronize = synchronize,
		.cuGetErrorName = error_name,
		.cuEventCreate = event_create,
		.cuEventRecord = event_record,
		.cuMemHostAlloc = host_alloc,
		.cuMemHostGetDevicePointer_v2 = host_pointer,
		.cuLibraryLoadData = load_library,
		.cuLibraryEnumerateKernels = enumerate,
		.cuKernelGetFunction = get_function,
		.cuLaunchKernelEx = launch_stamp,
		.cuStreamQuery = stream_query,
		.cuStreamWriteValue32_v2 = write_value,
	};
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	gpd_devices.all[0].priority_greatest = -5;
	if (!ledger)
		make_ledger();
	gpd_gpu_timestamp_start(0);
	ledger->policies[0] = GPD_POLICY_NONE;
	for (uint32_t i = 1; i <= CLIENTS_MAX; i++)
		gpd_ledger_add_tenant(ledger, i, "tenant");
	client_count = 0;
	gpu.free_ns = 0;
	gpu.refuses = false;
	return 0;
}

struct client *
add_client(uint32_t tenant, uint64_t kernel_ns)
{
	struct client *client = &clients[client_count++];

	memset(client, 0, sizeof(*client));
	client->kernel_ns = kernel_ns;
	client->per_message = 10;
	client->session.id = client_count;
	client->session.account.closing = &client->session.closing;
	client->session.account.ledger = ledger;
	client->session.account.entry = gpd_ledger_open(ledger, client_count, tenant, 0);
	for (uint32_t i = 0; i < 2; i++)
		client->streams[i].driver = (CUstream)&client->gpu_streams[i];
	return client;
}

struct gpd_ledger_tenant_line *
terms_of(uint32_t tenant)
{
	return &ledger->tenants[tenant].devices[0];
}

void
launch_on(struct client *client, uint32_t stream, uint64_t ns)
{
	struct gpd_stream *on = &client->streams[stream - STREAM];
	uint32_t other = OTHER_STREAM - stream;

	if (!gpd_schedule_continue_batch(&client->session.account, 0, on->batch))
		gpd_schedule_launch(&client->session.account, 0, on->driver, &on->batch,
				    end_of(&client->gpu_streams[other]) > now_ns()
					    ? GPD_SCHEDULE_BUSY
					    : client->streams[other].batch);
	sleep_until(now_ns() + LAUNCH_NS);
	run_kernel(&client->gpu_streams[stream - STREAM], ns);
	client->launches++;
}

void
launch(struct client *client, uint64_t ns)
{
	launch_on(client, STREAM, ns);
}

void
pause_client(struct client *client)
{
	gpd_schedule_end_batches(client->session.account.schedule);
}

static void *
work(void *arg)
{
	struct client *client = arg;

	while (!stopped) {
		uint64_t end;

		for (unsigned int i = 0; i < client->per_message && !stopped; i++) {
			launch(client, client->kernel_ns);
			client->used_ns += client->kernel_ns;
		}
		pause_client(client);
		end = end_of(&client->gpu_streams[0]);
		if (client->waits)
			sleep_until(end);
		else if (end > now_ns() + QUEUE_NS)
			sleep_until(end - QUEUE_NS);
		if (client->think_ns)
			sleep_until(now_ns() + client->think_ns);
	}
	return NULL;
}

void
start_clients(void)
{
	stopped = false;
	for (unsigned int i = 0; i < client_count; i++)
		assert_int_equal(pthread_create(&clients[i].thread, NULL, work, &clients[i]), 0);
}

void
close_client(struct client *client)
{
	gpd_schedule_stop(&client->session.account);
	for (uint32_t i = 0; i < 2; i++)
		sleep_until(end_of(&client->gpu_streams[i]));
	gpd_schedule_free(&client->session.account);
}

void
stop_clients(void)
{
	stopped = true;
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].session.closing = true;
	for (unsigned int i = 0; i < client_count; i++)
		(void)pthread_join(clients[i].thread, NULL);
}

void
measure(uint64_t ns)
{
	start_clients();
	sleep_until(now_ns() + 300 * MS);
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].used_ns = 0;
	sleep_until(now_ns() + ns);
	stop_clients();
}

int
schedule_teardown(void **state)
{
	for (unsigned int i = 0; i < client_count; i++)
		close_client(&clients[i]);
	assert_int_equal(gpu.events, 0);
	assert_int_equal(gpu.waiting, 0);
	gpd_ledger_close_worker(ledger, 0);
	return 0;
}

void
assert_part(uint64_t got, uint64_t of, unsigned int wanted, unsigned int within)
{
	uint64_t part = of ? got * 1000 / of : 0;

	if (part + within < wanted || part > wanted + within)
		fail_msg("%lu of %lu are %lu per mille, not %u", (unsigned long)got,
			 (unsigned long)of, (unsigned long)part, wanted);
}

void
assert_measured(uint64_t (*run)(uint64_t *wanted), unsigned int within)
{
	uint64_t wanted, got = run(&wanted);

	assert_part(got, wanted, 1000, within);
}

static uint64_t
sum(void)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < client_count; i++)
		all += clients[i].used_ns;
	return all;
}

static bool
fits(uint64_t got, uint64_t of, struct part part)
{
	uint64_t have = of ? got * 1000 / of : 0;

	return have >= part.least && have <= part.most;
}

void
assert_parts(bool of_sum, const struct part *parts)
{
	measure(TRIAL_NS);
	for (unsigned int i = 0; i < client_count; i++) {
		uint64_t of = of_sum ? sum() : TRIAL_NS;

		if (!fits(clients[i].used_ns, of, parts[i]))
			fail_msg("client %u: %lu of %lu", i, (unsigned long)clients[i].used_ns,
				 (unsigned long)of);
	}
}

uint64_t
measured(const struct client *client)
{
	return client->session.account.entry->devices[0].gpu_ns;
}

uint64_t
waited(const struct client *client)
{
	return client->session.account.entry->counts.waited_ns;
}
