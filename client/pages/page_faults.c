/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/page_faults.h"

#include "base/lock.h"
#include "base/thread.h"
#include "client/base/log.h"
#include "client/pages/page_signal.h"
#include "client/pages/page_userfault.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Maximum number of direct threads at a time: one per session. */
#define DIRECT_MAX 64

/* A pending fault: on the stack of its thread, which waits for the result, or a userfaultfd
 * event. */
struct fault {
	struct fault *next;
	uint64_t address;
	enum gpc_page_access access;
	bool is_event;
	atomic_int answer; /* 0: pending; SERVED or REFUSED */
};
enum {
	SERVED = 1,
	REFUSED = 2,
};

static __thread bool direct_here __attribute__((tls_model("initial-exec")));
static __thread bool forbidden_here __attribute__((tls_model("initial-exec")));
/* The same flags for the thread that reads events: thread IDs; 0: none. */
static atomic_int direct_threads[DIRECT_MAX];
static atomic_int forbidden;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started GP_GUARDED_BY(lock);
static size_t running GP_GUARDED_BY(lock); /* number of queues with a thread */
static _Atomic(enum gpc_page_faults_mechanism) mechanism;
static gpc_page_faults_serve *serve_fault; /* set before the mechanism */

/* Queues for the faults of ordinary and of direct threads, each with a serving thread. */
struct queue {
	_Atomic(struct fault *) waiting;
	atomic_int wanted; /* futex word, incremented with each fault */
	bool direct;
};
static struct queue queues[] = { { .direct = false }, { .direct = true } };
#define QUEUES (sizeof(queues) / sizeof(queues[0]))

/* Completed events, pushed for reuse; and those that the reader has popped from there. */
static _Atomic(struct fault *) events_done;
static struct fault *events_free;

static int
thread_get_id(void)
{
	return (int)syscall(SYS_gettid);
}

static void
futex_wait_while(atomic_int *word, int value)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void
futex_wake(atomic_int *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void
list_push(_Atomic(struct fault *) *list, struct fault *fault)
{
	struct fault *next = atomic_load(list);

	do
		fault->next = next;
	while (!atomic_compare_exchange_weak(list, &next, fault));
}

static void
queue_add(struct queue *queue, struct fault *fault)
{
	list_push(&queue->waiting, fault);
	atomic_fetch_add(&queue->wanted, 1);
	futex_wake(&queue->wanted);
}

/* Serving threads. */

static void
fault_answer(struct fault *fault, bool served)
{
	atomic_int *answer = &fault->answer;

	if (fault->is_event) {
		/* A thread whose page was mapped has already been resumed. */
		if (!served)
			gpc_page_userfault_refuse(fault->address, false);
		list_push(&events_done, fault);
		return;
	}
	/* The thread may resume, and the fault be gone, from here on: a superfluous wakeup is
	 * harmless. */
	atomic_store(answer, served ? SERVED : REFUSED);
	futex_wake(answer);
}

static void
queue_answer(struct fault *fault, bool direct)
{
	while (fault) {
		struct fault *next = fault->next;

		fault_answer(fault, serve_fault(fault->address, fault->access, direct));
		fault = next;
	}
}

static void *
queue_run(void *arg)
{
	struct queue *queue = arg;

	forbidden_here = true;
	for (;;) {
		int seen = atomic_load(&queue->wanted);
		struct fault *faults = atomic_exchange(&queue->waiting, NULL);

		if (faults)
			queue_answer(faults, queue->direct);
		else
			futex_wait_while(&queue->wanted, seen);
	}
	return NULL;
}

bool
gpc_page_faults_request(uint64_t address, enum gpc_page_access access)
{
	struct fault fault = { .address = address, .access = access };

	if (forbidden_here)
		return false;
	queue_add(&queues[direct_here], &fault);
	while (atomic_load(&fault.answer) == 0)
		futex_wait_while(&fault.answer, 0);
	return atomic_load(&fault.answer) == SERVED;
}

/* Events. The reader allocates no memory from the program's heap. */

static bool
events_grow(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct fault *more =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (more == MAP_FAILED)
		return false;
	for (size_t i = 0; i < size / sizeof(*more); i++) {
		more[i].next = events_free;
		events_free = &more[i];
	}
	return true;
}

static struct fault *
event_create(uint64_t address, enum gpc_page_access access)
{
	struct fault *event;

	if (!events_free)
		events_free = atomic_exchange(&events_done, NULL);
	if (!events_free && !events_grow())
		return NULL;
	event = events_free;
	events_free = event->next;
	*event = (struct fault){ .address = address, .access = access, .is_event = true };
	return event;
}

static bool
thread_is_direct(int thread)
{
	for (int i = 0; i < DIRECT_MAX; i++) {
		if (atomic_load(&direct_threads[i]) == thread)
			return true;
	}
	return false;
}

static void
event_report(uint64_t address, enum gpc_page_access access, int thread)
{
	struct fault *event =
		atomic_load(&forbidden) == thread ? NULL : event_create(address, access);

	if (event)
		queue_add(&queues[thread_is_direct(thread)], event);
	else
		gpc_page_userfault_refuse(address, true);
}

/* Per-thread flags. */

void
gpc_page_faults_set_direct(bool direct)
{
	int self = thread_get_id(), from = direct ? 0 : self;

	direct_here = direct;
	for (int i = 0; i < DIRECT_MAX; i++) {
		int expected = from;

		if (atomic_compare_exchange_strong(&direct_threads[i], &expected,
						   direct ? self : 0))
			return;
	}
}

void
gpc_page_faults_forbid(void)
{
	forbidden_here = true;
	if (atomic_load(&mechanism) == GPC_PAGE_FAULTS_USERFAULT)
		atomic_store(&forbidden, thread_get_id());
}

void
gpc_page_faults_allow(void)
{
	forbidden_here = false;
	if (atomic_load(&mechanism) == GPC_PAGE_FAULTS_USERFAULT)
		atomic_store(&forbidden, 0);
}

/* Mechanism. */

enum gpc_page_faults_mechanism
gpc_page_faults_mechanism(void)
{
	return atomic_load(&mechanism);
}

static int
userfault_start(void)
{
	bool in_kernel;
	int r = gpc_page_userfault_start(event_report, &in_kernel);

	if (r == 0) {
		gpc_log(GPC_LOG_INFO, "managed memory: userfaultfd, system calls %s",
			in_kernel ? "included" : "excluded");
		atomic_store(&mechanism, GPC_PAGE_FAULTS_USERFAULT);
	}
	return r;
}

static int
mechanism_start(void)
{
	const char *wanted = getenv("GPUPOOL_MANAGED");
	int r = wanted && strcmp(wanted, "signal") == 0 ? -ENOTSUP : userfault_start();

	if (r == 0)
		return 0;
	if (wanted && strcmp(wanted, "userfaultfd") == 0)
		gpc_log_always("managed memory: no userfaultfd (%s); SIGSEGV is used instead",
			       strerror(-r));
	r = gpc_page_signal_start();
	if (r == 0) {
		gpc_log(GPC_LOG_INFO, "managed memory: SIGSEGV");
		atomic_store(&mechanism, GPC_PAGE_FAULTS_SIGNAL);
	}
	return r;
}

int
gpc_page_faults_start(gpc_page_faults_serve *serve)
{
	int r = 0;

	(void)pthread_mutex_lock(&lock);
	if (!started) {
		serve_fault = serve;
		while (r == 0 && running < QUEUES) {
			r = gp_thread_start("gpupool-pages", 0, queue_run, &queues[running]);
			running += r == 0;
		}
		if (r == 0)
			r = mechanism_start();
		started = r == 0;
	}
	(void)pthread_mutex_unlock(&lock);
	return r;
}

void
gpc_page_faults_cover(uint64_t base, uint64_t size)
{
	gpc_page_signal_cover(base, size);
}

void
gpc_page_faults_reinstall(void)
{
	gpc_page_signal_reinstall();
}

void
gpc_page_faults_forked(void)
{
	atomic_store(&mechanism, GPC_PAGE_FAULTS_NONE);
	gpc_page_signal_forked();
	gpc_page_userfault_forked();
}
