/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches. The calling thread works on its own grid, so a small launch wakes no other thread;
 * workers help with grids that have blocks left to start.
 */
#include "softgpu/engine/run/launch.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "softgpu/engine/fault.h"
#include "softgpu/engine/memory/vmem.h"
#include "softgpu/engine/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE 4096 /* backward branches per warp before a worker switches to its next block */
#define COOPERATIVE_SLICE 64
#define MAX_LIVE 16          /* blocks of a worker if the started ones do not end */
#define MAX_SLICES 64        /* slices before another block is started */
#define MAX_REST_NS 1000000u /* maximum of nanosleep; bounds the delay of a cancelled launch */
#define MAX_SHARED 232448u   /* 227 KiB, as in compute capability 9.0 */
#define MAX_COOPERATIVE 8192u
#define STACK_BYTES 16384u
#define WORKSPACE_BYTES 512u
#define ARGUMENT_BYTES (GS_PTX_MAX_PARAM_BYTES + 4u + WORKSPACE_BYTES)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t idle;
	struct gs_job *jobs;
	int count; /* workers, including the calling thread */
	int sleeping;
} workers = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
GP_COND_CONSTRUCTOR(workers.work);
GP_COND_CONSTRUCTOR(workers.idle);

/* Cache of parameter buffers for later launches. */
static pthread_mutex_t arguments_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	void *buffers[64];
	int count;
} spare;

static bool
is_cancelled(struct gs_job *job)
{
	const volatile int *cancel = job->launch->cancel;

	if (cancel && *cancel)
		gs_job_fail(job, GS_CANCELLED, "cancelled");
	return gs_job_is_over(job);
}

static bool
claim(struct gs_job *job, uint64_t *number)
{
	*number = atomic_fetch_add_explicit(&job->next_block, 1, memory_order_relaxed);
	return *number < job->block_count;
}

/* Whether another block may be started. */
static bool
has_room(struct gs_job *job)
{
	return !job->live_max ||
	       atomic_load_explicit(&job->live, memory_order_relaxed) < job->live_max;
}

static bool
enter_multiprocessor(struct gs_job *job)
{
	if (!job->live_max ||
	    atomic_fetch_add_explicit(&job->live, 1, memory_order_relaxed) < job->live_max)
		return true;
	atomic_fetch_sub_explicit(&job->live, 1, memory_order_relaxed);
	return false;
}

static void
leave_multiprocessor(struct gs_job *job)
{
	if (job->live_max)
		atomic_fetch_sub_explicit(&job->live, 1, memory_order_relaxed);
}

/* The blocks that a thread has started; ended blocks are reused. */
struct crew {
	struct gs_block **live;
	uint32_t count;
	uint32_t limit;
	struct gs_block *spare;
};

static bool
begin_block(struct crew *crew, struct gs_job *job)
{
	struct gs_block *block = crew->spare;
	uint64_t number;

	if (!enter_multiprocessor(job))
		return false;
	if (!claim(job, &number)) {
		leave_multiprocessor(job);
		return false;
	}
	crew->spare = NULL;
	if (!block)
		block = gs_block_get(job);
	if (!block) {
		gs_job_fail(job, GS_OUT_OF_MEMORY, "out of memory for a block");
		return false;
	}
	gs_block_start(block, number);
	crew->live[crew->count++] = block;
	return true;
}

static void
end_block(struct crew *crew, uint32_t at)
{
	struct gs_block *block = crew->live[at];

	leave_multiprocessor(block->job);
	crew->live[at] = crew->live[--crew->count];
	if (crew->spare)
		gs_block_put(block);
	else
		crew->spare = block;
}

/* Runs a slice of each started block. */
static void
step_all(struct crew *crew, struct gs_job *job, long slice)
{
	uint32_t at = 0;

	while (at < crew->count && !is_cancelled(job)) {
		if (gs_block_step(crew->live[at], slice) == GS_RUN_DONE)
			end_block(crew, at);
		else
			at++;
	}
}

/* After a slice in which all blocks slept: sleeps until the first of them is due. */
static void
rest(const struct crew *crew)
{
	uint32_t ns = MAX_REST_NS;

	for (uint32_t i = 0; i < crew->count; i++)
		ns = crew->live[i]->rest_ns < ns ? crew->live[i]->rest_ns : ns;
	if (ns && crew->count)
		gp_sleep_ns(ns);
}

/* Blocks of a cooperative grid wait for each other, so all must be started. */
static void
run_blocks(struct crew *crew, struct gs_job *job)
{
	bool cooperative = job->launch->cooperative;
	long slice = cooperative ? COOPERATIVE_SLICE : SLICE;
	int patience = 0;

	while (!is_cancelled(job)) {
		bool wants_more = cooperative || !crew->count || patience > MAX_SLICES;
		uint32_t before = crew->count;

		if (wants_more && crew->count < crew->limit && begin_block(crew, job))
			patience = 0;
		if (!crew->count)
			return;
		before = crew->count;
		step_all(crew, job, slice);
		rest(crew);
		patience = crew->count < before ? 0 : patience + 1;
	}
}

static void
work_on(struct gs_job *job)
{
	struct crew crew = { .limit = job->launch->cooperative ? MAX_COOPERATIVE : MAX_LIVE };

	crew.live = calloc(crew.limit, sizeof(*crew.live));
	if (!crew.live) {
		gs_job_fail(job, GS_OUT_OF_MEMORY, "out of memory");
		return;
	}
	run_blocks(&crew, job);
	for (uint32_t i = 0; i < crew.count; i++)
		gs_block_put(crew.live[i]);
	if (crew.spare)
		gs_block_put(crew.spare);
	free(crew.live);
}

static bool
has_blocks_left(struct gs_job *job)
{
	return atomic_load_explicit(&job->next_block, memory_order_relaxed) < job->block_count &&
	       has_room(job) && !gs_job_is_over(job);
}

/* Called with the lock held: whether another thread may work on the job. */
static bool
may_help(const struct gs_job *job)
{
	const struct gs_partition *partition = job->launch->partition;

	return !partition || partition->threads < partition->count;
}

/* Called with the lock held. */
static void
join_partition(struct gs_job *job)
{
	if (job->launch->partition)
		job->launch->partition->threads++;
}

/* Called with the lock held. Another thread may use the free slot. */
static void
leave_partition(struct gs_job *job)
{
	if (!job->launch->partition)
		return;
	job->launch->partition->threads--;
	if (workers.sleeping)
		pthread_cond_signal(&workers.work);
}

/* Called with the lock held: returns the job with the fewest helpers that has blocks left. */
static struct gs_job *
choose_job(void)
{
	struct gs_job *best = NULL;

	for (struct gs_job *job = workers.jobs; job; job = job->next) {
		if (has_blocks_left(job) && may_help(job) &&
		    (!best || job->helpers < best->helpers))
			best = job;
	}
	return best;
}

static void *
worker_main(void *arg)
{
	pthread_mutex_lock(&workers.lock);
	for (;;) {
		struct gs_job *job = choose_job();

		if (!job) {
			workers.sleeping++;
			pthread_cond_wait(&workers.work, &workers.lock);
			workers.sleeping--;
			continue;
		}
		job->helpers++;
		join_partition(job);
		pthread_mutex_unlock(&workers.lock);
		work_on(job);
		pthread_mutex_lock(&workers.lock);
		leave_partition(job);
		if (--job->helpers == 0)
			pthread_cond_broadcast(&workers.idle);
	}
	return NULL;
}

int
gs_workers_start(int count)
{
	workers.count = 1;
	while (workers.count < count && gp_thread_start("engine", 0, worker_main, NULL) == 0)
		workers.count++;
	return GS_OK;
}

int
gs_engine_workers(void)
{
	return workers.count;
}

static void
offer(struct gs_job *job)
{
	uint64_t wanted = job->block_count - 1;

	pthread_mutex_lock(&workers.lock);
	join_partition(job);
	job->next = workers.jobs;
	workers.jobs = job;
	for (int i = 0; i < workers.sleeping && (uint64_t)i < wanted; i++)
		pthread_cond_signal(&workers.work);
	pthread_mutex_unlock(&workers.lock);
}

static void
withdraw(struct gs_job *job)
{
	struct gs_job **link = &workers.jobs;

	pthread_mutex_lock(&workers.lock);
	while (*link != job)
		link = &(*link)->next;
	*link = job->next;
	leave_partition(job);
	while (job->helpers)
		pthread_cond_wait(&workers.idle, &workers.lock);
	pthread_mutex_unlock(&workers.lock);
}

static uint8_t *
arguments_get(void)
{
	void *buffer = NULL;

	pthread_mutex_lock(&arguments_lock);
	if (spare.count)
		buffer = spare.buffers[--spare.count];
	pthread_mutex_unlock(&arguments_lock);
	return buffer ? buffer : gs_vmem_alloc(ARGUMENT_BYTES);
}

static void
arguments_put(void *buffer)
{
	pthread_mutex_lock(&arguments_lock);
	if (spare.count < (int)(sizeof(spare.buffers) / sizeof(spare.buffers[0]))) {
		spare.buffers[spare.count++] = buffer;
		buffer = NULL;
	}
	pthread_mutex_unlock(&arguments_lock);
	gs_vmem_free(buffer);
}

static int
refuse(struct gs_error *error, int code, const char *why)
{
	error->code = code;
	snprintf(error->text, sizeof(error->text), "%s", why);
	return code;
}

static int
check_dimensions(const struct gs_launch *launch, struct gs_error *error)
{
	const struct gs_ptx_function *ptx = launch->function->ptx;
	uint64_t threads = 1;
	uint64_t blocks = 1;

	for (int i = 0; i < 3; i++) {
		if (!launch->grid[i] || !launch->block[i] || launch->block[i] > 1024 ||
		    launch->grid[i] > (i ? 65535u : 0x7fffffffu))
			return refuse(error, GS_INVALID_VALUE, "a dimension is out of range");
		if (launch->cluster[i] > 1)
			return refuse(error, GS_NOT_SUPPORTED, "clusters are not supported");
		if (ptx->required_block[i] && ptx->required_block[i] != launch->block[i])
			return refuse(error, GS_INVALID_VALUE,
				      "the kernel requires another block size");
		threads *= launch->block[i];
		blocks *= launch->grid[i];
	}
	if (threads > 1024)
		return refuse(error, GS_INVALID_VALUE, "too many threads in a block");
	if (threads > ptx->max_threads)
		return refuse(error, GS_LAUNCH_OUT_OF_RESOURCES,
			      "more threads in a block than the kernel was compiled for");
	if (launch->cooperative && blocks > MAX_COOPERATIVE)
		return refuse(error, GS_COOPERATIVE_LAUNCH_TOO_LARGE,
			      "too many blocks for a cooperative launch");
	return GS_OK;
}

static int
check_launch(const struct gs_launch *launch, struct gs_error *error)
{
	const struct gs_function *function = launch->function;
	uint64_t aligned = gs_dynamic_shared_at(function);

	if (!workers.count)
		return refuse(error, GS_NOT_INITIALIZED, "the engine was not started");
	if (function->unsupported)
		return refuse(error, GS_NOT_SUPPORTED, function->unsupported);
	if (aligned + launch->dynamic_shared > MAX_SHARED)
		return refuse(error, GS_INVALID_VALUE, "too much shared memory");
	if (launch->params_size < function->ptx->param_bytes ||
	    (!launch->params && function->ptx->param_bytes))
		return refuse(error, GS_INVALID_VALUE, "too few bytes of parameters");
	return check_dimensions(launch, error);
}

static uint64_t
local_stride(const struct gs_function *function)
{
	const struct gs_module *module = function->module;
	uint64_t most = 0;

	if (!function->calls)
		return function->local_bytes;
	for (uint32_t i = 0; i < module->ptx->function_count; i++) {
		if (!module->functions[i].ptx->is_entry && module->functions[i].local_bytes > most)
			most = module->functions[i].local_bytes;
	}
	return function->local_bytes + most + STACK_BYTES;
}

static void
prepare_job(struct gs_job *job, const struct gs_launch *launch)
{
	const struct gs_function *function = launch->function;

	memcpy(job->params, launch->params ? launch->params : "", function->ptx->param_bytes);
	if (launch->cooperative) {
		uint8_t *workspace = job->params + ARGUMENT_BYTES - WORKSPACE_BYTES;

		memset(workspace, 0, WORKSPACE_BYTES);
		job->grid_workspace = (uint64_t)(uintptr_t)workspace;
	}
	job->shared_bytes = function->shared_bytes;
	if (launch->dynamic_shared)
		job->shared_bytes =
			(uint32_t)(gs_dynamic_shared_at(function) + launch->dynamic_shared);
	job->local_stride = local_stride(function);
	job->multiprocessors =
		launch->multiprocessors ? launch->multiprocessors : (uint32_t)workers.count;
	if (launch->partition)
		job->live_max = (uint64_t)launch->resident_blocks * launch->partition->count;
	job->block_count = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

int
gs_launch(const struct gs_launch *launch, struct gs_error *error)
{
	struct gs_job job = { .launch = launch,
			      .function = launch->function,
			      .lock = PTHREAD_MUTEX_INITIALIZER };
	bool has_help;
	int r;

	*error = (struct gs_error){ 0 };
	r = check_launch(launch, error);
	if (r != GS_OK)
		return r;
	job.params = arguments_get();
	if (!job.params)
		return refuse(error, GS_OUT_OF_MEMORY, "out of memory for the parameters");
	prepare_job(&job, launch);
	gs_fault_catch();
	has_help = workers.count > 1 && (job.block_count > 1 || launch->partition);
	if (has_help)
		offer(&job);
	work_on(&job);
	if (has_help)
		withdraw(&job);
	arguments_put(job.params);
	pthread_mutex_destroy(&job.lock);
	r = atomic_load(&job.result);
	return r == GS_OK ? GS_OK : refuse(error, r, job.message);
}
