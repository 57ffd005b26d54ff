/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/issue/issue.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Queue length of a launcher. */
#define ENTRIES 128
/* Below RUN_MIN launches between two barriers, threads are not worthwhile and are not used for the
 * next WAIT launches. */
#define RUN_MIN 16
#define WAIT 64
/* How long a thread polls before it sleeps, and how long of that without yielding its processor. */
#define SPIN_NS 50000
#define SPIN_ALONE_NS 20000
#define NAP_NS 20000
#define NAP_LONG_NS 200000
#define LONG_NS 2000000
/* Processors per launch thread. */
#define CPUS_EACH 4
#define MOST_MAX 64

enum kind {
	LAUNCH,
	WRITE
};

struct entry {
	enum kind kind;
	struct gpd_issue_launch launch; /* WRITE: device and stream only */
	CUdeviceptr to;
	volatile uint32_t *host;
	uint32_t value;
	_Alignas(16) uint8_t room[GPD_ISSUE_ROOM]; /* attributes, followed by parameters */
};

/* A queue with one producer, the executor, and one consumer, the launcher's thread. */
struct gpd_launcher {
	struct gpd_issue *issue;
	pthread_t thread;
	_Alignas(64) _Atomic uint32_t given; /* entries queued; wraps around */
	_Alignas(64) _Atomic uint32_t taken;
	_Atomic bool stop;
	_Atomic bool sleeping; /* seq_cst with given: each side stores, then loads the other's */
	pthread_mutex_t lock;
	pthread_cond_t more;
	_Alignas(64) struct entry entries[ENTRIES];
};

/* Number in this process. */
static _Atomic unsigned int threads;

bool
gpd_issue_parse(const char *text, unsigned int *most_p)
{
	unsigned long most;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return !text || !*text;
	most = strtoul(text, &end, 10);
	*most_p = most > MOST_MAX ? MOST_MAX : (unsigned int)most;
	return !*end;
}

unsigned int
gpd_issue_most(int cpus, const char *text)
{
	unsigned int most = cpus > 0 ? (unsigned int)cpus / CPUS_EACH : 0;

	(void)gpd_issue_parse(text, &most);
	/* A single thread launches no faster than the executor. */
	return most < 2 ? 0 : most;
}

static bool
is_vain(const struct gpd_issue *issue)
{
	return atomic_load(issue->closing) || atomic_load(issue->sticky) != CUDA_SUCCESS;
}

static CUresult
launch(const struct gpd_issue_launch *launch)
{
	size_t size = launch->params_size;
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER,
		(void *)launch->params,
		CU_LAUNCH_PARAM_BUFFER_SIZE,
		&size,
		CU_LAUNCH_PARAM_END,
	};

	return gpd_driver.cuLaunchKernelEx(&launch->config, launch->function, NULL,
					   size ? extra : NULL);
}

static void
carry_out(struct gpd_issue *issue, const struct entry *entry)
{
	CUresult result = CUDA_ERROR_DEINITIALIZED;

	if (!is_vain(issue))
		result = gpd_device_enter(entry->launch.device);
	if (entry->kind == WRITE) {
		if (result == CUDA_SUCCESS)
			result = gpd_driver.cuStreamWriteValue32_v2(entry->launch.config.hStream,
								    entry->to, entry->value, 0);
		/* If the write fails, the value is stored here, so that waits for it end. */
		if (result != CUDA_SUCCESS)
			__atomic_store_n(entry->host, entry->value, __ATOMIC_RELEASE);
		return;
	}
	if (result == CUDA_SUCCESS)
		result = launch(&entry->launch);
	if (__builtin_expect(result != CUDA_SUCCESS, 0) && !is_vain(issue))
		issue->failed(issue, &entry->launch, result);
}

static bool
is_empty(struct gpd_launcher *launcher)
{
	return atomic_load(&launcher->given) ==
	       atomic_load_explicit(&launcher->taken, memory_order_relaxed);
}

/* Whether to poll once more before sleeping. */
static bool
goes_on_looking(uint64_t since)
{
	uint64_t looked = gp_now_ns() - since;

	gp_cpu_relax();
	return looked < SPIN_NS && (looked < SPIN_ALONE_NS || !gp_cpu_yield());
}

static void
sleep_until_more(struct gpd_launcher *launcher)
{
	pthread_mutex_lock(&launcher->lock);
	atomic_store(&launcher->sleeping, true);
	while (is_empty(launcher) && !atomic_load(&launcher->stop))
		pthread_cond_wait(&launcher->more, &launcher->lock);
	atomic_store(&launcher->sleeping, false);
	pthread_mutex_unlock(&launcher->lock);
}

static void *
work(void *arg)
{
	struct gpd_launcher *launcher = arg;
	uint64_t since = gp_now_ns();

	for (;;) {
		uint32_t taken = atomic_load_explicit(&launcher->taken, memory_order_relaxed);

		if (!is_empty(launcher)) {
			carry_out(launcher->issue, &launcher->entries[taken % ENTRIES]);
			atomic_store_explicit(&launcher->taken, taken + 1, memory_order_release);
			if (is_empty(launcher))
				since = gp_now_ns();
			continue;
		}
		if (atomic_load(&launcher->stop))
			return NULL;
		if (goes_on_looking(since))
			continue;
		sleep_until_more(launcher);
		since = gp_now_ns();
	}
}

static void
wake(struct gpd_launcher *launcher)
{
	if (!atomic_load(&launcher->sleeping))
		return;
	pthread_mutex_lock(&launcher->lock);
	pthread_cond_signal(&launcher->more);
	pthread_mutex_unlock(&launcher->lock);
}

/* Waits until at most `left` entries are left. */
static void
await(const struct gpd_launcher *launcher, uint32_t left)
{
	uint32_t given = atomic_load_explicit(&launcher->given, memory_order_relaxed);
	uint64_t since = 0;
	bool looks = true;

	while (given - atomic_load_explicit(&launcher->taken, memory_order_acquire) > left) {
		if (!since)
			since = gp_now_ns();
		looks = looks && goes_on_looking(since);
		if (!looks)
			gp_sleep_ns(gp_now_ns() - since < LONG_NS ? NAP_NS : NAP_LONG_NS);
	}
}

static struct entry *
reserve(struct gpd_launcher *launcher)
{
	/* When the queue is full, waits for half of it, which is long enough to sleep. */
	if (atomic_load_explicit(&launcher->given, memory_order_relaxed) -
		    atomic_load_explicit(&launcher->taken, memory_order_acquire) ==
	    ENTRIES)
		await(launcher, ENTRIES / 2);
	return &launcher->entries[atomic_load_explicit(&launcher->given, memory_order_relaxed) %
				  ENTRIES];
}

static void
give(struct gpd_issue *issue, struct gpd_launcher *launcher)
{
	uint32_t given = atomic_load_explicit(&launcher->given, memory_order_relaxed);

	issue->pending = true;
	atomic_store(&launcher->given, given + 1);
	wake(launcher);
}

static struct gpd_launcher *
begin(struct gpd_issue *issue)
{
	struct gpd_launcher *launcher = aligned_alloc(64, sizeof(*launcher));

	if (!launcher)
		return NULL;
	memset(launcher, 0, sizeof(*launcher));
	launcher->issue = issue;
	pthread_mutex_init(&launcher->lock, NULL);
	gp_cond_init(&launcher->more);
	if (!gp_thread_start_joinable(&launcher->thread, "launcher", 0, work, launcher))
		return launcher;
	(void)pthread_cond_destroy(&launcher->more);
	(void)pthread_mutex_destroy(&launcher->lock);
	free(launcher);
	return NULL;
}

/* Starts another thread if the limits allow it. */
static bool
add_launcher(struct gpd_issue *issue)
{
	if (issue->begun == GPD_LAUNCHERS)
		return false;
	if (atomic_fetch_add(&threads, 1) < issue->most &&
	    (issue->launchers[issue->begun] = begin(issue))) {
		issue->begun++;
		return true;
	}
	atomic_fetch_sub(&threads, 1);
	return false;
}

/* Chooses a launcher for a stream without one: a new one, or the existing ones in turn. */
static uint8_t
choose(struct gpd_issue *issue)
{
	if (add_launcher(issue))
		return (uint8_t)issue->begun;
	return issue->begun ? (uint8_t)(issue->next++ % issue->begun + 1) : 0;
}

bool
gpd_issue_begins(struct gpd_issue *issue)
{
	if (issue->wait) {
		issue->wait--;
		return false;
	}
	issue->run = 0;
	return true;
}

void
gpd_issue_settle_pending(struct gpd_issue *issue)
{
	for (unsigned int i = 0; i < issue->begun; i++)
		await(issue->launchers[i], 0);
	issue->pending = false;
}

void
gpd_issue_barrier_pending(struct gpd_issue *issue)
{
	gpd_issue_settle_pending(issue);
	if (issue->run < RUN_MIN)
		issue->wait = WAIT;
	issue->run = 0;
}

static void
copy_launch(struct entry *entry, const struct gpd_issue_launch *launch)
{
	size_t attributes = launch->config.numAttrs * sizeof(*launch->config.attrs);

	entry->kind = LAUNCH;
	entry->launch = *launch;
	if (attributes) {
		memcpy(entry->room, launch->config.attrs, attributes);
		entry->launch.config.attrs = (CUlaunchAttribute *)entry->room;
	} else {
		entry->launch.config.attrs = NULL;
	}
	entry->launch.params = entry->room + attributes;
	if (launch->params_size)
		memcpy(entry->room + attributes, launch->params, launch->params_size);
}

bool
gpd_issue_launch(struct gpd_issue *issue, uint8_t *launcher, const struct gpd_issue_launch *launch)
{
	size_t size = launch->config.numAttrs * sizeof(*launch->config.attrs) + launch->params_size;

	if (size <= GPD_ISSUE_ROOM && !*launcher)
		*launcher = choose(issue);
	if (size > GPD_ISSUE_ROOM || !*launcher) {
		gpd_issue_settle(issue);
		return false;
	}
	copy_launch(reserve(issue->launchers[*launcher - 1]), launch);
	give(issue, issue->launchers[*launcher - 1]);
	issue->run++;
	issue->handed++;
	return true;
}

void
gpd_issue_write(struct gpd_issue *issue, uint8_t launcher, int device, CUstream stream,
		CUdeviceptr to, volatile uint32_t *host, uint32_t value)
{
	struct entry *entry = reserve(issue->launchers[launcher - 1]);

	entry->kind = WRITE;
	entry->launch.device = device;
	entry->launch.config.hStream = stream;
	entry->to = to;
	entry->host = host;
	entry->value = value;
	give(issue, issue->launchers[launcher - 1]);
}

static void
end(struct gpd_launcher *launcher)
{
	atomic_store(&launcher->stop, true);
	wake(launcher);
	(void)pthread_join(launcher->thread, NULL);
	(void)pthread_cond_destroy(&launcher->more);
	(void)pthread_mutex_destroy(&launcher->lock);
	free(launcher);
	atomic_fetch_sub(&threads, 1);
}

void
gpd_issue_stop(struct gpd_issue *issue)
{
	gpd_issue_settle(issue);
	while (issue->begun)
		end(issue->launchers[--issue->begun]);
	issue->most = 0;
}
