/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/schedule_fixture.h"

#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A client is not farther ahead of the GPU than a driver's queue would let it be. */
#define QUEUE_NS (100 * MS)
#define TRIALS 5
#define TRIAL_NS SECOND
/* So many more, where the machine held threads up for more than this part of the time. */
#define HELD_UP_TRIALS 6
#define HELD_UP_MAX_NS (TRIAL_NS / 50)
/* How late a sleeper may wake on a machine that has a processor for it. */
#define LATE_NS (US * 300)

struct gpu_event {
	uint64_t at_ns;
};

struct gpu gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };
struct gpd_ledger *ledger;
struct client clients[CLIENTS_MAX];
unsigned int client_count;

static _Atomic bool stopped;
static _Atomic uint64_t held_up_ns; /* in all, since the trial began */

uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

void
sleep_until(uint64_t ns)
{
	struct timespec until = { (time_t)(ns / SECOND), (long)(ns % SECOND) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

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

static CUresult
event_create(CUevent *event, unsigned int flags)
{
	assert_int_equal(flags, CU_EVENT_DEFAULT);
	*event = calloc(1, sizeof(struct gpu_event));
	gpu.events++;
	return CUDA_SUCCESS;
}

static CUresult
event_destroy(CUevent event)
{
	gpu.events--;
	free(event);
	return CUDA_SUCCESS;
}

static CUresult
event_record(CUevent event, CUstream stream)
{
	gpu.records++;
	pthread_mutex_lock(&gpu.lock);
	((struct gpu_event *)event)->at_ns = later(now_ns(), ((struct gpu_stream *)stream)->end_ns);
	pthread_mutex_unlock(&gpu.lock);
	return CUDA_SUCCESS;
}

static CUresult
event_query(CUevent event)
{
	CUresult result;

	pthread_mutex_lock(&gpu.lock);
	result = ((struct gpu_event *)event)->at_ns <= now_ns() ? CUDA_SUCCESS
								: CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&gpu.lock);
	return result;
}

static CUresult
stream_query(CUstream stream)
{
	gpu.asked_in_vain += (void *)stream == gpu.gone;
	return end_of((struct gpu_stream *)stream) <= now_ns() ? CUDA_SUCCESS
							       : CUDA_ERROR_NOT_READY;
}

static CUresult
event_elapsed(float *ms, CUevent from, CUevent to)
{
	pthread_mutex_lock(&gpu.lock);
	*ms = (float)((double)(int64_t)(((struct gpu_event *)to)->at_ns -
					((struct gpu_event *)from)->at_ns) /
		      1e6);
	pthread_mutex_unlock(&gpu.lock);
	return CUDA_SUCCESS;
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

/* The thread that hands turns on is as old as the process, and so is the ledger. */
static void
make_ledger(void)
{
	int fd;

	ledger = gpd_ledger_create(&fd);
	assert_non_null(ledger);
	(void)close(fd);
}

int
schedule_setup(void **state)
{
	gpd_driver = (struct gpd_driver){
		.cuCtxSetCurrent = set_current,
		.cuEventCreate = event_create,
		.cuEventDestroy_v2 = event_destroy,
		.cuEventRecord = event_record,
		.cuEventQuery = event_query,
		.cuStreamQuery = stream_query,
		.cuEventElapsedTime_v2 = event_elapsed,
	};
	gpd_devices.count = 1;
	gpd_devices.all[0].priority_greatest = -5;
	if (!ledger)
		make_ledger();
	ledger->policies[0] = GPD_POLICY_NONE;
	for (uint32_t i = 1; i <= CLIENTS_MAX; i++)
		gpd_ledger_add_tenant(ledger, i, "tenant");
	client_count = 0;
	gpu.free_ns = 0;
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
	client->session.account.line = gpd_ledger_open(ledger, client_count, tenant, 0);
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

	gpd_schedule_launch(&client->session.account, 0, on->driver, &on->batch);
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
	gpd_schedule_pause(client->session.account.schedule);
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
	sleep_until(end_of(&client->gpu_streams[0]));
	sleep_until(end_of(&client->gpu_streams[1]));
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

/* Sees whether threads that sleep, as the clients and those who give them turns do, wake in time.
 */
static void *
witness(void *unused)
{
	while (!stopped) {
		uint64_t wanted = now_ns() + MS, woke;

		sleep_until(wanted);
		woke = now_ns();
		if (woke > wanted + LATE_NS)
			held_up_ns += woke - wanted - LATE_NS;
	}
	return unused;
}

void
measure(uint64_t ns)
{
	pthread_t thread;

	start_clients();
	sleep_until(now_ns() + 300 * MS);
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].used_ns = 0;
	held_up_ns = 0;
	assert_int_equal(pthread_create(&thread, NULL, witness, NULL), 0);
	sleep_until(now_ns() + ns);
	stop_clients();
	(void)pthread_join(thread, NULL);
}

int
schedule_teardown(void **state)
{
	for (unsigned int i = 0; i < client_count; i++)
		close_client(&clients[i]);
	assert_int_equal(gpu.events, 0);
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
	int held_up = 0;

	for (int trial = 0; trial < TRIALS + held_up; trial++) {
		bool fit = true;

		measure(TRIAL_NS);
		for (unsigned int i = 0; i < client_count; i++)
			fit = fit && fits(clients[i].used_ns, of_sum ? sum() : TRIAL_NS, parts[i]);
		if (fit)
			return;
		for (unsigned int i = 0; i < client_count; i++)
			clients[i].session.closing = false;
		held_up += held_up_ns > HELD_UP_MAX_NS;
		if (held_up == HELD_UP_TRIALS) {
			print_message("nothing can be said on this machine, which holds threads "
				      "up: by %lu us in the last trial\n",
				      (unsigned long)(held_up_ns / US));
			skip();
		}
	}
	for (unsigned int i = 0; i < client_count; i++)
		print_message("%lu of %lu\n", (unsigned long)clients[i].used_ns,
			      (unsigned long)(of_sum ? sum() : TRIAL_NS));
	fail();
}

uint64_t
measured(const struct client *client)
{
	return client->session.account.line->devices[0].gpu_ns;
}

uint64_t
waited(const struct client *client)
{
	return client->session.account.line->counts.waited_ns;
}
