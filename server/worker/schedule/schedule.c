/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/schedule.h"

#include "base/clock.h"
#include "server/worker/device/device.h"
#include "server/worker/issue/issue.h"
#include "server/worker/schedule/account.h"
#include "server/worker/schedule/turn.h"

#include <stdlib.h>

/* Launches without any check in between. */
#define BATCH 256
/* If batches are more frequent than this, some are not measured: timestamps cost time on both
 * sides, and kernels of several streams that share a hardware queue of the GPU cannot overtake
 * them. Where the measurements only make up an account, they become fewer with its age, so that
 * its relative error stays the same: beside the contexts of other processes a measurement costs the
 * GPU 0.14 ms, because the GPU switches to another context after each kernel that ends before the
 * next one arrives (bench/driver/timeslices.cu). */
#define MEASURE_NS 1000000
#define MEASURE_ACCOUNT_NS 20000000
#define MEASURE_AGE_PART 1000
#define SKIP_MAX 1000
/* The first batches of a session are all measured. */
#define SEEN_MIN 4
/* A session counts as using a single stream if it has used no other for this many batches. */
#define ALONE_BATCHES 1000
/* Longer intervals are from a client that does something else. */
#define PERIOD_MAX_NS 1000000

static uint32_t
next_random(struct gpd_schedule_run *run)
{
	run->random ^= run->random << 13;
	run->random ^= run->random >> 17;
	run->random ^= run->random << 5;
	return run->random;
}

/* Returns the mean time between two measurements. */
static uint64_t
get_interval_ns(const struct gpd_schedule_run *run)
{
	uint64_t interval = (run->begun_ns - run->first_ns) / MEASURE_AGE_PART;

	if (run->holds || interval < MEASURE_NS)
		return MEASURE_NS;
	return interval < MEASURE_ACCOUNT_NS ? interval : MEASURE_ACCOUNT_NS;
}

/*
 * Whether this batch is measured: of frequent ones a few at random, so that the kind of work does
 * not matter; each represents the unmeasured ones before it.
 */
static bool
batch_is_sampled(struct gpd_schedule_run *run)
{
	uint64_t now = gp_now_ns(), period = now - run->begun_ns, mean;

	if (period > PERIOD_MAX_NS)
		period = PERIOD_MAX_NS;
	run->period_ns = run->begun_ns ? (7 * run->period_ns + period) / 8 : PERIOD_MAX_NS;
	run->begun_ns = now;
	if (!run->first_ns)
		run->first_ns = now;
	run->represents++;
	if (run->seen < SEEN_MIN) {
		run->seen++;
		return true;
	}
	if (run->skip) {
		run->skip--;
		return false;
	}
	mean = get_interval_ns(run) / (run->period_ns + 1);
	if (mean > SKIP_MAX)
		mean = SKIP_MAX;
	run->skip = next_random(run) % (2 * (uint32_t)mean + 1);
	return true;
}

/* Measurements, and a new turn, must come after what was launched. */
static void
launches_settle(const struct gpd_schedule_run *run)
{
	if (run->account->issue)
		gpd_issue_settle(run->account->issue);
}

static void
batch_end(struct gpd_schedule_run *run)
{
	if (!run->in_batch)
		return;
	run->in_batch = false;
	run->batch++;
	if (run->measured)
		launches_settle(run);
	if (run->measured && gpd_device_enter(run->device) == CUDA_SUCCESS) {
		gpd_usage_meter_close(&run->meter, run->from - run->pass, run->times, run->joins);
		gpd_turn_wake(run);
	}
	if (!run->holds)
		run->pass = 0;
	atomic_store_explicit(&run->open, false, memory_order_release);
}

/* Whether the rest of the granted launches is still valid. */
static bool
pass_is_valid(struct gpd_schedule_run *run)
{
	if (!run->holds || !run->pass)
		return false;
	atomic_store(&run->open, true);
	if (!atomic_load(&run->revoked))
		return true;
	atomic_store(&run->open, false);
	return false;
}

static void
batch_begin(struct gpd_schedule_run *run)
{
	if (!pass_is_valid(run)) {
		run->holds = gpd_turn_is_required(run->account, run->device);
		run->must = false;
		if (run->holds)
			launches_settle(run);
		if (!run->holds && run->takes_turns)
			gpd_turn_release(run, false);
		run->pass = run->holds ? gpd_turn_acquire(run, &run->must) : BATCH;
	}
	run->timed = (batch_is_sampled(run) || run->must) && gpd_usage_meter_has_room(&run->meter);
	run->measured = run->holds || run->timed;
	run->times = run->timed ? run->represents : 0;
	if (run->timed)
		run->represents = 0;
	run->from = run->pass;
	run->in_batch = true;
}

static struct gpd_schedule_run *
add_run(struct gpd_account *account, int device)
{
	struct gpd_schedule_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->account = account;
	run->batch = 1;
	run->device = device;
	run->random = gpd_ledger_index(account->ledger, account->entry) * 2654435761u | 1;
	if (gpd_turn_add_run(run)) {
		free(run);
		return NULL;
	}
	run->session_next = account->schedule;
	account->schedule = run;
	return run;
}

static struct gpd_schedule_run *
find_run(const struct gpd_account *account, int device)
{
	struct gpd_schedule_run *run = account->schedule;

	while (run && run->device != device)
		run = run->session_next;
	return run;
}

bool
gpd_schedule_continue_batch(const struct gpd_account *account, int device, uint64_t batch)
{
	struct gpd_schedule_run *run = find_run(account, device);

	if (!run || !run->pass || batch != run->batch || atomic_load(&run->revoked))
		return false;
	run->pass--;
	return true;
}

/* A stream that was used recently may be used again before a timestamp enqueued here is done. */
static bool
is_alone(const struct gpd_schedule_run *run, uint64_t others)
{
	return others == 0 || (others != GPD_SCHEDULE_BUSY && run->batch - others > ALONE_BATCHES);
}

/* Called for the first launch of a batch on this stream, or of a new batch. */
void
gpd_schedule_launch(struct gpd_account *account, int device, CUstream stream, uint64_t *batch,
		    uint64_t others)
{
	struct gpd_schedule_run *run = find_run(account, device);

	if (!run)
		run = add_run(account, device);
	/* Out of memory: nothing is delayed; the launch itself will fail. */
	if (!run)
		return;
	if (!run->in_batch || !run->pass || atomic_load(&run->revoked) ||
	    (run->measured && !gpd_usage_meter_has_room(&run->meter))) {
		batch_end(run);
		batch_begin(run);
	}
	run->pass--;
	*batch = run->batch;
	if (run->measured)
		launches_settle(run);
	if (run->measured && gpd_device_enter(device) == CUDA_SUCCESS)
		gpd_usage_meter_open(&run->meter, stream, run->timed, is_alone(run, others));
}

void
gpd_schedule_end_batches(struct gpd_schedule_run *runs)
{
	for (struct gpd_schedule_run *run = runs; run; run = run->session_next)
		batch_end(run);
}

void
gpd_schedule_mark(struct gpd_schedule_run *runs)
{
	gpd_schedule_end_batches(runs);
	for (struct gpd_schedule_run *run = runs; run; run = run->session_next)
		gpd_usage_meter_mark(&run->meter);
}

int
gpd_schedule_priority(const struct gpd_account *account, int device, int wanted)
{
	const struct gpd_device *on = gpd_device_get(device);
	uint32_t priority = atomic_load(&account->entry->priority);

	if (!on || priority == 0)
		return wanted;
	if (priority == 1)
		return on->priority_least;
	if (wanted > on->priority_least)
		wanted = on->priority_least;
	return wanted - 1 < on->priority_greatest ? on->priority_greatest : wanted - 1;
}

void
gpd_schedule_stop(struct gpd_account *account)
{
	gpd_schedule_mark(account->schedule);
	for (struct gpd_schedule_run *run = account->schedule; run; run = run->session_next)
		gpd_turn_release(run, true);
}

void
gpd_schedule_free(struct gpd_account *account)
{
	struct gpd_schedule_run *run;

	while ((run = account->schedule)) {
		account->schedule = run->session_next;
		gpd_turn_remove_run(run);
		free(run);
	}
}
