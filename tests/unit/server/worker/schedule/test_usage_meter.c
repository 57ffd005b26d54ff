/* SPDX-License-Identifier: Apache-2.0 */
/* Measurement of the GPU time that sessions use, and its cost. */
#include "server/worker/device/device.h"
#include "server/worker/device/gpu_timestamp.h"
#include "server/worker/schedule/turn.h"
#include "server/worker/schedule/usage_meter.h"
#include "tests/unit/server/schedule_fixture.h"

static uint64_t
measure_queued(uint64_t *wanted)
{
	struct client *client = add_client(0, 0);

	for (int i = 0; i < 10000; i++) {
		launch(client, 20 * US);
		if (i % 100 == 99)
			pause_client(client);
	}
	close_client(client);
	assert_int_equal(waited(client), 0);
	*wanted = 10000 * 20 * US;
	return measured(client);
}

CASE(the_time_of_queued_kernels_is_measured)
{
	assert_measured(measure_queued, 20);
}

static uint64_t
measure_waited_for(uint64_t *wanted)
{
	struct client *client = add_client(0, 0);

	*wanted = 0;
	for (int i = 0; i < 200; i++) {
		uint64_t ns = i % 10 ? 200 * US : 10 * MS;

		launch(client, ns);
		pause_client(client);
		sleep_until(end_of(&client->gpu_streams[0]));
		sleep_until(now_ns() + MS);
		*wanted += ns;
	}
	close_client(client);
	return measured(client);
}

CASE(the_time_of_kernels_that_are_waited_for_is_measured)
{
	assert_measured(measure_waited_for, 20);
}

static uint64_t
measure_overlapping(uint64_t *wanted)
{
	struct client *client = add_client(0, 0);

	launch_on(client, STREAM, 20 * MS);
	launch_on(client, OTHER_STREAM, 10 * MS);
	pause_client(client);
	close_client(client);
	client_count = 0;
	*wanted = 30 * MS;
	return measured(client);
}

CASE(time_counts_once_on_streams_that_overlap)
{
	assert_measured(measure_overlapping, 70);
}

/* Work after a copy counts as the copy's. */
CASE(a_copy_ends_what_is_measured)
{
	struct client *client = add_client(0, 0);

	launch(client, 10 * MS);
	gpd_account_copy(&client->session.account, 1 << 20, 0);
	run_kernel(&client->gpu_streams[0], 50 * MS);
	close_client(client);
	assert_part(measured(client), 10 * MS, 1000, 50);
}

CASE(the_time_is_known_while_the_session_goes_on)
{
	struct client *client = add_client(0, 0);
	uint64_t deadline = now_ns() + 5 * SECOND;

	launch(client, 10 * MS);
	pause_client(client);
	while (measured(client) == 0 && now_ns() < deadline)
		sleep_until(now_ns() + MS);
	assert_part(measured(client), 10 * MS, 1000, 50);
}

/* Once it is known: first there are as many as there are batches. */
CASE(one_alone_costs_few_marks)
{
	struct client *client = add_client(1, 0);

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	for (int i = 0; i < 2000; i++) {
		if (i == 1000)
			gpu.stamps = gpu.marks = 0;
		launch(client, 20 * US);
		pause_client(client);
	}
	assert_in_range(gpu.stamps + gpu.marks, 1, 150);
}

/* Else a stream that is never idle would hide how far it is. */
CASE(what_had_no_mark_is_done_with_what_follows)
{
	struct gpu_stream stream = { 0 }, other = { 0 };
	struct gpd_usage_meter_harvest found;
	struct gpd_usage_meter meter;
	uint64_t end;

	assert_int_equal(gpd_usage_meter_init(&meter, 0), 0);
	gpd_usage_meter_open(&meter, (CUstream)&stream, false, true);
	run_kernel(&stream, MS);
	gpd_usage_meter_close(&meter, 3, 0, 10);
	gpd_usage_meter_open(&meter, (CUstream)&other, true, true);
	gpd_usage_meter_close(&meter, 1, 1, 10);
	gpd_usage_meter_open(&meter, (CUstream)&stream, true, true);
	run_kernel(&stream, MS);
	gpd_usage_meter_close(&meter, 2, 1, 10);
	assert_int_equal(meter.launches, 6);
	end = end_of(&stream);
	run_kernel(&stream, SECOND);
	sleep_until(end);
	found = gpd_usage_meter_collect(&meter);
	assert_int_equal(meter.launches, 0);
	assert_int_equal(meter.entries, 0);
	assert_int_equal(found.entries, 2);
	assert_in_range(found.all_ns, MS, 2 * MS);
	gpd_usage_meter_fini(&meter);
}

CASE(a_stream_that_goes_is_asked_no_more)
{
	struct client *client = add_client(1, 0);

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	for (int i = 0; i < 200; i++) {
		launch(client, 20 * US);
		pause_client(client);
	}
	gpd_schedule_mark(client->session.account.schedule);
	gpu.gone = client->streams[0].driver;
	sleep_until(end_of(&client->gpu_streams[0]) + 30 * MS);
	(void)add_client(2, 0);
	launch(&clients[1], MS);
	pause_client(&clients[1]);
	assert_in_range(waited(&clients[1]), 0, 400 * MS);
	assert_int_equal(gpu.asked_in_vain, 0);
	gpu.gone = NULL;
}

/* Recording one would delay launches of other threads. */
CASE(no_event_is_ever_made_or_recorded)
{
	struct client *client = add_client(1, 0), *other = add_client(2, 0);

	gpu.stamps = gpu.marks = 0;
	for (int i = 0; i < 300; i++) {
		if (i % 100 == 0)
			ledger->policies[0] = i == 100 ? GPD_POLICY_BEST_EFFORT : GPD_POLICY_NONE;
		launch_on(client, STREAM, 50 * US);
		launch_on(client, OTHER_STREAM, 50 * US);
		pause_client(client);
		launch(other, 50 * US);
		pause_client(other);
		if (i % 50 == 0)
			gpd_schedule_mark(client->session.account.schedule);
	}
	close_client(client);
	close_client(other);
	client_count = 0;
	assert_true(gpu.stamps > 0);
	assert_true(gpu.marks > 0);
	assert_int_equal(gpu.events, 0);
}

/* The average is right whatever the GPU did before, with a policy too. */
static uint64_t
measure_unstamped(uint64_t *wanted)
{
	struct client *client = add_client(1, 0);

	*wanted = 0;
	for (int i = 0; i < 40; i++) {
		uint64_t ns = i % 10 ? 3 * MS : 15 * MS;

		ledger->policies[0] = i < 20 ? GPD_POLICY_NONE : GPD_POLICY_BEST_EFFORT;
		launch(client, ns);
		pause_client(client);
		sleep_until(end_of(&client->gpu_streams[0]));
		sleep_until(now_ns() + 1700 * US);
		*wanted += ns;
	}
	close_client(client);
	client_count = 0;
	return measured(client);
}

CASE(a_driver_that_loads_no_kernel_leaves_it_to_looks)
{
	gpu.refuses = true;
	gpd_gpu_timestamp_stop(0);
	gpd_gpu_timestamp_start(0);
	gpu.refuses = false;
	gpu.stamps = 0;
	assert_measured(measure_unstamped, 70);
	assert_int_equal(gpu.stamps, 0);
}

CASE(a_driver_that_runs_no_kernel_leaves_it_to_looks)
{
	gpu.refuses = true;
	assert_measured(measure_unstamped, 70);
	gpu.refuses = false;
}

/* Both ends of this number of batches with one launch each. */
static int
stamps_of(struct client *client, uint32_t stream, int batches)
{
	int before = gpu.stamps;

	for (int i = 0; i < batches; i++) {
		launch_on(client, stream, 0);
		pause_client(client);
	}
	return gpu.stamps - before;
}

/* A timestamp would wait for a slot, and later work of its stream for the timestamp. */
CASE(no_stamp_stands_beside_work_of_another_stream)
{
	struct client *client = add_client(1, 0);
	uint64_t end;

	assert_int_equal(stamps_of(client, STREAM, 1), 2);
	/* None of a batch knows what the others will be. */
	gpu.stamps = 0;
	launch_on(client, STREAM, 100 * MS);
	launch_on(client, OTHER_STREAM, 50 * MS);
	pause_client(client);
	assert_int_equal(gpu.stamps, 1);
	end = end_of(&client->gpu_streams[1]);
	sleep_until(end);
	assert_int_equal(stamps_of(client, STREAM, 1), 0);
	close_client(client);
	client_count = 0;
	assert_part(measured(client), 150 * MS, 1000, 200);
	assert_int_equal(gpu.stamps, 1);
}

CASE(a_stream_that_is_used_no_more_is_forgotten)
{
	struct client *client = add_client(1, 0);

	assert_int_equal(stamps_of(client, OTHER_STREAM, 1), 2);
	assert_int_equal(stamps_of(client, STREAM, 900), 0);
	launch_on(client, OTHER_STREAM, 300 * MS);
	pause_client(client);
	assert_int_equal(stamps_of(client, STREAM, 1100), 0);
	sleep_until(end_of(&client->gpu_streams[1]));
	assert_true(stamps_of(client, STREAM, 3000) > 0);
}

/* Entries are reused in whatever order they end. */
CASE(as_many_as_there_is_room_for_are_measured_again_and_again)
{
	struct gpu_stream streams[4] = { 0 };
	struct gpd_usage_meter_harvest found;
	struct gpd_usage_meter meter;
	uint64_t all = 0;

	assert_int_equal(gpd_usage_meter_init(&meter, 0), 0);
	for (int round = 0; round < 3; round++) {
		int opened = 0;

		while (gpd_usage_meter_has_room(&meter)) {
			struct gpu_stream *stream = &streams[(opened + round) % 4];

			gpd_usage_meter_open(&meter, (CUstream)stream, true, true);
			run_kernel(stream, 50 * US);
			gpd_usage_meter_close(&meter, 1, 1, 0);
			opened++;
		}
		assert_int_equal(opened, GPD_USAGE_METER_ENTRIES);
		gpd_usage_meter_open(&meter, (CUstream)&streams[0], true, true);
		assert_int_equal(meter.open_count, 0);
		for (int i = 0; i < 4; i++) {
			sleep_until(end_of(&streams[i]));
		}
		found = gpd_usage_meter_collect(&meter);
		assert_int_equal(found.entries, GPD_USAGE_METER_ENTRIES);
		assert_int_equal(meter.entries, 0);
		all += found.busy_ns;
	}
	assert_in_range(all, 3 * GPD_USAGE_METER_ENTRIES * 50 * US * 99 / 100,
			3 * GPD_USAGE_METER_ENTRIES * 50 * US * 3 / 2);
	gpd_usage_meter_fini(&meter);
}

CASE(a_lost_gpu_is_waited_for_no_more)
{
	struct gpu_stream stream = { 0 }, other = { 0 };
	struct gpd_usage_meter_harvest found;
	struct gpd_usage_meter meter;

	assert_int_equal(gpd_usage_meter_init(&meter, 0), 0);
	gpd_usage_meter_open(&meter, (CUstream)&stream, true, true);
	run_kernel(&stream, 300 * MS);
	gpd_usage_meter_close(&meter, 3, 1, 0);
	gpd_usage_meter_open(&meter, (CUstream)&other, true, false);
	run_kernel(&other, 100 * MS);
	gpd_usage_meter_close(&meter, 1, 1, 0);
	found = gpd_usage_meter_collect(&meter);
	assert_int_equal(found.entries, 0);
	assert_int_equal(meter.launches, 4);
	atomic_store(&gpd_devices.lost, CUDA_ERROR_ILLEGAL_ADDRESS);
	found = gpd_usage_meter_collect(&meter);
	atomic_store(&gpd_devices.lost, 0);
	assert_int_equal(found.entries, 2);
	assert_int_equal(found.busy_ns, 0);
	assert_int_equal(meter.launches, 0);
	assert_int_equal(meter.entries, 0);
	assert_int_equal(meter.polled, 0);
	sleep_until(end_of(&other));
	gpd_usage_meter_fini(&meter);
}

UNIT_TEST_MAIN(NULL, NULL)
