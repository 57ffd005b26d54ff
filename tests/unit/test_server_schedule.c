/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that launch, each in a thread, on a GPU that is a clock: it runs one kernel at a time,
 * each for as long as the test says.
 */
#include "server/driver.h"
#include "server/ledger.h"
#include "server/schedule.h"
#include "server/schedule_turns.h"
#include "server/session.h"
#include "server/stream.h"
#include "server/worker.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define STREAM 1
#define OTHER_STREAM 2
#define CLIENTS_MAX 8
/* A client is not farther ahead of the GPU than a driver's queue would let it be. */
#define QUEUE_NS (100 * MS)
#define TRIALS 5
#define TRIAL_NS SECOND

struct gpu_stream {
	uint64_t end_ns;
};

struct gpu_event {
	uint64_t at_ns;
};

struct client {
	struct gpd_session session;
	struct gpd_stream streams[2];
	struct gpu_stream gpu_streams[2];
	pthread_t thread;
	uint64_t kernel_ns;
	unsigned int per_message; /* launches */
	bool waits;               /* for the GPU after each message */
	uint64_t think_ns;
	_Atomic uint64_t used_ns;
	_Atomic uint64_t launches;
};

static struct {
	pthread_mutex_t lock;
	uint64_t free_ns;
	uint64_t idle_ns; /* while it had something to do before */
	_Atomic int events, records, asked_in_vain;
	void *_Atomic gone; /* a stream */
} gpu = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct gpd_ledger *ledger;
static struct client clients[CLIENTS_MAX];
static unsigned int client_count;
static _Atomic bool stopped;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static void
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

static void
run_kernel(struct gpu_stream *stream, uint64_t ns)
{
	pthread_mutex_lock(&gpu.lock);
	stream->end_ns = later(later(now_ns(), stream->end_ns), gpu.free_ns) + ns;
	gpu.free_ns = stream->end_ns;
	pthread_mutex_unlock(&gpu.lock);
}

static uint64_t
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

	ledger = gpd_worker.ledger = gpd_ledger_create(&fd);
	assert_non_null(ledger);
	(void)close(fd);
}

static int
setup(void **state)
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
	gpd_worker.device_count = 1;
	gpd_worker.devices[0].priority_greatest = -5;
	if (!ledger)
		make_ledger();
	ledger->policies[0] = GPD_POLICY_NONE;
	for (uint32_t i = 1; i <= CLIENTS_MAX; i++)
		gpd_ledger_add_tenant(ledger, i, "tenant");
	client_count = 0;
	gpu.free_ns = 0;
	return 0;
}

/* Of a tenant of its own, unless one is named. */
static struct client *
add(uint32_t tenant, uint64_t kernel_ns)
{
	struct client *client = &clients[client_count++];

	memset(client, 0, sizeof(*client));
	client->kernel_ns = kernel_ns;
	client->per_message = 10;
	client->session.id = client_count;
	client->session.account.ledger = ledger;
	client->session.account.line = gpd_ledger_open(ledger, client_count, tenant, 0);
	for (uint32_t i = 0; i < 2; i++) {
		client->streams[i].driver = (CUstream)&client->gpu_streams[i];
		assert_int_equal(gpd_handle_add(&client->session.handles, GPD_KIND_STREAM,
						STREAM + i, &client->streams[i].handle),
				 0);
	}
	return client;
}

static struct gpd_ledger_tenant_line *
terms_of(uint32_t tenant)
{
	return &ledger->tenants[tenant].devices[0];
}

static void
launch_on(struct client *client, uint32_t stream, uint64_t ns)
{
	gpd_schedule_launch(&client->session, stream);
	run_kernel(&client->gpu_streams[stream - STREAM], ns);
	client->launches++;
}

static void
launch(struct client *client, uint64_t ns)
{
	launch_on(client, STREAM, ns);
}

static void
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

static void
start(void)
{
	stopped = false;
	for (unsigned int i = 0; i < client_count; i++)
		assert_int_equal(pthread_create(&clients[i].thread, NULL, work, &clients[i]), 0);
}

static void
close_client(struct client *client)
{
	gpd_schedule_stop(&client->session);
	sleep_until(end_of(&client->gpu_streams[0]));
	sleep_until(end_of(&client->gpu_streams[1]));
	gpd_schedule_free(&client->session);
}

static void
stop(void)
{
	stopped = true;
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].session.closing = true;
	for (unsigned int i = 0; i < client_count; i++)
		(void)pthread_join(clients[i].thread, NULL);
}

/* Lets all work, and counts from a moment at which they have found their ways. */
static void
measure(uint64_t ns)
{
	start();
	sleep_until(now_ns() + 300 * MS);
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].used_ns = 0;
	sleep_until(now_ns() + ns);
	stop();
}

static int
teardown(void **state)
{
	for (unsigned int i = 0; i < client_count; i++) {
		close_client(&clients[i]);
		for (int s = 0; s < 2; s++)
			gpd_handle_remove(&clients[i].session.handles,
					  &clients[i].streams[s].handle);
		gpd_handle_fini(&clients[i].session.handles);
	}
	assert_int_equal(gpu.events, 0);
	gpd_ledger_close_worker(ledger, 0);
	return 0;
}

static void
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

/* What a client's part of something is to be, in per mille. */
struct part {
	unsigned int least, most;
};

static bool
fits(uint64_t got, uint64_t of, struct part part)
{
	uint64_t have = of ? got * 1000 / of : 0;

	return have >= part.least && have <= part.most;
}

/*
 * The clients' parts of the time, or of what they get together.  Clocks of a busy machine stand
 * still now and then, so there are several trials.
 */
static void
assert_parts(bool of_sum, const struct part *parts)
{
	for (int trial = 0; trial < TRIALS; trial++) {
		bool fit = true;

		measure(TRIAL_NS);
		for (unsigned int i = 0; i < client_count; i++)
			fit = fit && fits(clients[i].used_ns, of_sum ? sum() : TRIAL_NS, parts[i]);
		if (fit)
			return;
		for (unsigned int i = 0; i < client_count; i++)
			clients[i].session.closing = false;
	}
	for (unsigned int i = 0; i < client_count; i++)
		print_message("%lu of %lu\n", (unsigned long)clients[i].used_ns,
			      (unsigned long)(of_sum ? sum() : TRIAL_NS));
	fail();
}

static uint64_t
measured(const struct client *client)
{
	return client->session.account.line->devices[0].gpu_ns;
}

static uint64_t
waited(const struct client *client)
{
	return client->session.account.line->counts.waited_ns;
}

static void
the_time_of_queued_kernels_is_measured(void **state)
{
	struct client *client = add(0, 0);

	for (int i = 0; i < 10000; i++) {
		launch(client, 20 * US);
		if (i % 100 == 99)
			pause_client(client);
	}
	close_client(client);
	assert_part(measured(client), 10000 * 20 * US, 1000, 20);
	assert_int_equal(waited(client), 0);
}

static void
the_time_of_kernels_that_are_waited_for_is_measured(void **state)
{
	struct client *client = add(0, 0);
	uint64_t wanted = 0;

	for (int i = 0; i < 200; i++) {
		uint64_t ns = i % 10 ? 200 * US : 10 * MS;

		launch(client, ns);
		pause_client(client);
		sleep_until(end_of(&client->gpu_streams[0]));
		sleep_until(now_ns() + MS);
		wanted += ns;
	}
	close_client(client);
	assert_part(measured(client), wanted, 1000, 20);
}

/* What is behind a copy is the copy's. */
static void
time_counts_once_on_streams_that_overlap(void **state)
{
	struct client *client = add(0, 0);

	launch_on(client, STREAM, 20 * MS);
	launch_on(client, OTHER_STREAM, 10 * MS);
	pause_client(client);
	close_client(client);
	assert_part(measured(client), 30 * MS, 1000, 30);
}

static void
a_copy_ends_what_is_measured(void **state)
{
	struct client *client = add(0, 0);

	launch(client, 10 * MS);
	gpd_account_copy(&client->session.account, 1 << 20, 0);
	run_kernel(&client->gpu_streams[0], 50 * MS);
	close_client(client);
	assert_part(measured(client), 10 * MS, 1000, 50);
}

static void
the_time_is_known_while_the_session_goes_on(void **state)
{
	struct client *client = add(0, 0);
	uint64_t deadline = now_ns() + 5 * SECOND;

	launch(client, 10 * MS);
	pause_client(client);
	while (measured(client) == 0 && now_ns() < deadline)
		sleep_until(now_ns() + MS);
	assert_part(measured(client), 10 * MS, 1000, 50);
}

static void
one_alone_keeps_the_gpu_busy(void **state)
{
	const struct part part = { 800, 1050 };

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, 500 * US);
	assert_parts(false, &part);
}

static void
short_and_long_kernels_get_the_same_time(void **state)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, 50 * US);
	(void)add(2, 20 * MS);
	assert_parts(true, (const struct part[]){ { 450, 550 }, { 450, 550 } });
	assert_true(waited(&clients[0]) > 0);
	assert_true(waited(&clients[1]) > 0);
}

static void
who_waits_for_each_kernel_gets_the_same_time(void **state)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	add(1, 500 * US)->waits = true;
	clients[0].per_message = 1;
	(void)add(2, 5 * MS);
	gpd_turns_idle_ns = 10 * MS;
	/* Were its turn over whenever it waits, it would get a tenth. */
	assert_parts(true, (const struct part[]){ { 250, 600 }, { 400, 750 } });
	gpd_turns_idle_ns = MS / 5;
}

static void
weights_divide_the_time(void **state)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, MS);
	(void)add(2, 300 * US);
	(void)add(3, 2 * MS);
	terms_of(1)->weight = 1;
	terms_of(2)->weight = 2;
	terms_of(3)->weight = 5;
	assert_parts(true, (const struct part[]){ { 100, 150 }, { 225, 275 }, { 590, 660 } });
}

static void
a_limit_leaves_the_gpu_idle(void **state)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, 500 * US);
	terms_of(1)->limit = 30;
	assert_parts(false, (const struct part[]){ { 200, 330 } });
}

static void
equal_parts_are_not_exceeded(void **state)
{
	ledger->policies[0] = GPD_POLICY_EQUAL;
	(void)add(1, MS);
	add(2, MS)->think_ns = 200 * MS;
	assert_parts(false, (const struct part[]){ { 350, 540 }, { 10, 90 } });
}

static void
fixed_parts_are_kept_and_not_exceeded(void **state)
{
	ledger->policies[0] = GPD_POLICY_FIXED;
	(void)add(1, MS);
	(void)add(2, 200 * US);
	terms_of(1)->time_share = 25;
	terms_of(2)->time_share = 50;
	assert_parts(false, (const struct part[]){ { 150, 280 }, { 300, 540 } });
}

/* Once it is known: first there are as many as there are batches. */
static void
one_alone_costs_few_events(void **state)
{
	struct client *client = add(1, 0);

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	for (int i = 0; i < 2000; i++) {
		if (i == 1000)
			gpu.records = 0;
		launch(client, 20 * US);
		pause_client(client);
	}
	assert_in_range(gpu.records, 1, 150);
}

/* Else a stream that is never idle would hide how far it is. */
static void
what_had_no_event_is_done_with_what_follows(void **state)
{
	struct gpu_stream stream = { 0 }, other = { 0 };
	struct gpd_meter_harvest found;
	struct gpd_meter meter;

	gpd_meter_init(&meter);
	assert_true(gpd_meter_open(&meter, (CUstream)&stream, false));
	run_kernel(&stream, MS);
	gpd_meter_close(&meter, 3, 0, 10);
	assert_true(gpd_meter_open(&meter, (CUstream)&other, true));
	gpd_meter_close(&meter, 1, 1, 10);
	assert_true(gpd_meter_open(&meter, (CUstream)&stream, true));
	run_kernel(&stream, MS);
	gpd_meter_close(&meter, 2, 1, 10);
	assert_int_equal(meter.launches, 6);
	run_kernel(&stream, SECOND);
	sleep_until(now_ns() + 5 * MS);
	found = gpd_meter_take(&meter);
	assert_int_equal(meter.launches, 0);
	assert_int_equal(meter.entries, 0);
	assert_int_equal(found.entries, 2);
	assert_in_range(found.all_ns, MS, 2 * MS);
	gpd_meter_fini(&meter);
}

static void
a_stream_that_goes_is_asked_no_more(void **state)
{
	struct client *client = add(1, 0);

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	for (int i = 0; i < 200; i++) {
		launch(client, 20 * US);
		pause_client(client);
	}
	gpd_schedule_settle(client->session.account.schedule);
	gpu.gone = client->streams[0].driver;
	sleep_until(end_of(&client->gpu_streams[0]) + 30 * MS);
	(void)add(2, 0);
	launch(&clients[1], MS);
	pause_client(&clients[1]);
	assert_in_range(waited(&clients[1]), 0, 400 * MS);
	assert_int_equal(gpu.asked_in_vain, 0);
	gpu.gone = NULL;
}

static void
a_session_with_its_own_multiprocessors_is_not_held_back(void **state)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, MS);
	terms_of(1)->limit = 1;
	clients[0].session.account.line->devices[0].sm_assigned = 16;
	measure(300 * MS);
	assert_int_equal(waited(&clients[0]), 0);
}

/* Uses up what a limit of one per cent allows. */
static void
exhaust(struct client *client)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	terms_of(1)->limit = 1;
	launch(client, 100 * MS);
	pause_client(client);
}

static void *
launch_once(void *arg)
{
	launch(arg, MS);
	return NULL;
}

/* How long one launch of an exhausted client is held back after `change`. */
static uint64_t
held_back(struct client *client, void (*change)(struct client *client))
{
	uint64_t since;

	exhaust(client);
	assert_int_equal(pthread_create(&client->thread, NULL, launch_once, client), 0);
	sleep_until(now_ns() + 300 * MS);
	assert_int_equal(client->launches, 1);
	since = now_ns();
	change(client);
	(void)pthread_join(client->thread, NULL);
	return now_ns() - since;
}

static void
close_it(struct client *client)
{
	client->session.closing = true;
}

static void
drop_policy(struct client *client)
{
	ledger->policies[0] = GPD_POLICY_NONE;
}

static void
raise_limit(struct client *client)
{
	terms_of(1)->limit = 100;
}

static void
closing_ends_the_wait(void **state)
{
	assert_in_range(held_back(add(1, 0), close_it), 0, 400 * MS);
}

static void
the_end_of_the_policy_ends_the_wait(void **state)
{
	assert_in_range(held_back(add(1, 0), drop_policy), 0, 400 * MS);
}

static void
a_higher_limit_ends_the_wait(void **state)
{
	assert_in_range(held_back(add(1, 0), raise_limit), 0, 400 * MS);
}

static void
a_policy_that_was_off_leaves_no_debts(void **state)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, MS);
	(void)add(2, MS);
	start();
	sleep_until(now_ns() + 200 * MS);
	ledger->policies[0] = GPD_POLICY_NONE;
	sleep_until(now_ns() + 700 * MS);
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	sleep_until(now_ns() + 100 * MS);
	stop();
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].session.closing = false;
	assert_parts(true, (const struct part[]){ { 440, 560 }, { 440, 560 } });
}

static void
work_that_hangs_is_waited_for_half_a_second(void **state)
{
	uint64_t begin;

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add(1, 0);
	(void)add(2, 0);
	launch(&clients[0], 0);
	clients[0].gpu_streams[0].end_ns = now_ns() + 2 * SECOND;
	pause_client(&clients[0]);
	begin = now_ns();
	launch(&clients[1], MS);
	assert_in_range(now_ns() - begin, 400 * MS, 1500 * MS);
	clients[0].session.closing = true;
}

static void
priorities_of_streams_follow_the_session(void **state)
{
	struct client *client = add(1, 0);
	struct gpd_ledger_session *line = client->session.account.line;

	assert_int_equal(gpd_schedule_priority(&client->session, 0, -3), -3);
	line->priority = 1;
	assert_int_equal(gpd_schedule_priority(&client->session, 0, -3), 0);
	line->priority = 2;
	assert_int_equal(gpd_schedule_priority(&client->session, 0, 0), -1);
	assert_int_equal(gpd_schedule_priority(&client->session, 0, 7), -1);
	assert_int_equal(gpd_schedule_priority(&client->session, 0, -5), -5);
	assert_int_equal(gpd_schedule_priority(&client->session, 0, -9), -5);
}

static void
launches_on_no_stream_are_left_to_the_call(void **state)
{
	struct client *client = add(1, 0);

	gpd_schedule_launch(&client->session, 99);
	assert_null(client->session.account.schedule);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_time_of_queued_kernels_is_measured),
		CASE(the_time_of_kernels_that_are_waited_for_is_measured),
		CASE(time_counts_once_on_streams_that_overlap),
		CASE(a_copy_ends_what_is_measured),
		CASE(the_time_is_known_while_the_session_goes_on),
		CASE(one_alone_keeps_the_gpu_busy),
		CASE(short_and_long_kernels_get_the_same_time),
		CASE(who_waits_for_each_kernel_gets_the_same_time),
		CASE(weights_divide_the_time),
		CASE(a_limit_leaves_the_gpu_idle),
		CASE(equal_parts_are_not_exceeded),
		CASE(fixed_parts_are_kept_and_not_exceeded),
		CASE(one_alone_costs_few_events),
		CASE(what_had_no_event_is_done_with_what_follows),
		CASE(a_stream_that_goes_is_asked_no_more),
		CASE(a_session_with_its_own_multiprocessors_is_not_held_back),
		CASE(closing_ends_the_wait),
		CASE(the_end_of_the_policy_ends_the_wait),
		CASE(a_higher_limit_ends_the_wait),
		CASE(a_policy_that_was_off_leaves_no_debts),
		CASE(work_that_hangs_is_waited_for_half_a_second),
		CASE(priorities_of_streams_follow_the_session),
		CASE(launches_on_no_stream_are_left_to_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
