/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/page_signal.h"

#include "base/lock.h"
#include "client/base/log.h"
#include "client/pages/page_faults.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

/* Maximum number of the program's handlers that can be distinguished. */
#define ACTIONS 8

/* Faults elsewhere, which a program may handle regularly, are recognized without a lock. */
#define AREAS 16
#define NEAR ((uint64_t)1 << 32)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool active;
/* Ranges closer to one another than NEAR are merged into one area. */
static struct {
	atomic_uint_fast64_t base, end;
} areas[AREAS];
static atomic_uint area_count;

/*
 * The program's handlers, each with a separate handler of the library before it. A program that
 * restores or calls the handler that it found before means the one it had at that time, not one
 * that it has installed since.
 */
static struct sigaction actions[ACTIONS];
static atomic_uint action_count;

/* Handler. */

static enum gpc_page_access
fault_get_access(const void *context)
{
#ifdef __x86_64__
	const ucontext_t *machine = context;

	return machine->uc_mcontext.gregs[REG_ERR] & 2 ? GPC_PAGE_WRITE : GPC_PAGE_READ;
#else
	(void)context;
	return GPC_PAGE_ACCESS_UNKNOWN;
#endif
}

/* Jumps to such pages cannot be served: they would be retried forever. */
static bool
fault_is_jump(const void *context)
{
#ifdef __x86_64__
	return ((const ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 16;
#else
	(void)context;
	return false;
#endif
}

static bool
address_is_covered(uint64_t address)
{
	unsigned int count = atomic_load(&area_count);

	for (unsigned int i = 0; i < count; i++) {
		if (address >= atomic_load(&areas[i].base) && address < atomic_load(&areas[i].end))
			return true;
	}
	return false;
}

static bool
fault_serve(const siginfo_t *info, const void *context)
{
	uint64_t address = (uintptr_t)info->si_addr;

	if (!atomic_load(&active) ||
	    (info->si_code != SEGV_ACCERR && info->si_code != SEGV_MAPERR) ||
	    !address_is_covered(address) || fault_is_jump(context))
		return false;
	return gpc_page_faults_request(address, fault_get_access(context));
}

/* A fault cannot be ignored. */
static bool
action_is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) &&
	       (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

/* Returning retries the instruction, and the process terminates with a core dump of the faulting
 * state; a signal that was sent by a process is raised again. */
static void
process_terminate(const siginfo_t *info)
{
	const struct sigaction action = { .sa_handler = SIG_DFL };

	(void)sigaction(SIGSEGV, &action, NULL);
	if (info->si_code <= 0)
		(void)raise(SIGSEGV);
}

/* Calls the program's handler as the kernel would. */
static void
action_call(struct sigaction *action, int number, siginfo_t *info, void *context)
{
	const struct sigaction now = *action;
	sigset_t mask;

	if (now.sa_flags & SA_RESETHAND)
		*action = (struct sigaction){ .sa_handler = SIG_DFL };
	mask = now.sa_mask;
	if (!(now.sa_flags & SA_NODEFER))
		(void)sigaddset(&mask, SIGSEGV);
	(void)pthread_sigmask(SIG_BLOCK, &mask, NULL);
	if (now.sa_flags & SA_SIGINFO)
		now.sa_sigaction(number, info, context);
	else
		now.sa_handler(number);
}

static void
fault_handle(struct sigaction *action, int number, siginfo_t *info, void *context)
{
	int saved = errno;
	bool served = fault_serve(info, context);

	errno = saved;
	if (served)
		return;
	if (action_is_default(action))
		process_terminate(info);
	else
		action_call(action, number, info, context);
}

/* One handler per slot of actions[]. */
#define HANDLER(place)                                                                             \
	static void handle_##place(int number, siginfo_t *info, void *context)                     \
	{                                                                                          \
		fault_handle(&actions[place], number, info, context);                              \
	}
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
HANDLER(4)
HANDLER(5)
HANDLER(6)
HANDLER(7)

static void (*const handlers[ACTIONS])(int, siginfo_t *, void *) = {
	handle_0, handle_1, handle_2, handle_3, handle_4, handle_5, handle_6, handle_7,
};

/* Installation. */

static bool
action_is_ours(const struct sigaction *action)
{
	for (unsigned int i = 0; i < ACTIONS && (action->sa_flags & SA_SIGINFO); i++) {
		if (action->sa_sigaction == handlers[i])
			return true;
	}
	return false;
}

/* The C library leaves the rest of the mask undefined. */
static bool
actions_match(const struct sigaction *a, const struct sigaction *b)
{
	if (a->sa_flags != b->sa_flags || a->sa_sigaction != b->sa_sigaction)
		return false;
	for (int number = 1; number <= SIGRTMAX; number++) {
		if (sigismember(&a->sa_mask, number) != sigismember(&b->sa_mask, number))
			return false;
	}
	return true;
}

/* Returns the slot of the program's handler. When all slots are in use, the newest handler replaces
 * the last one. */
static unsigned int
action_find_slot(const struct sigaction *found) GP_LOCKED(lock)
{
	unsigned int count = atomic_load(&action_count);

	for (unsigned int i = 0; i < count; i++) {
		if (actions_match(&actions[i], found))
			return i;
	}
	if (count == ACTIONS)
		count--;
	actions[count] = *found;
	atomic_store(&action_count, count + 1);
	return count;
}

/* Uses the alternate signal stack if the program's handler does, as a program that handles stack
 * overflows requires. SA_NODEFER, because a handler of another signal may also touch such pages
 * while its thread waits for one. */
static int
handler_install(void) GP_LOCKED(lock)
{
	struct sigaction found, action = { .sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER };

	if (sigaction(SIGSEGV, NULL, &found) || action_is_ours(&found))
		return 0;
	action.sa_sigaction = handlers[action_find_slot(&found)];
	action.sa_flags |= found.sa_flags & SA_ONSTACK;
	(void)sigemptyset(&action.sa_mask);
	return sigaction(SIGSEGV, &action, NULL) ? -errno : 0;
}

int
gpc_page_signal_start(void)
{
	int r;

	(void)pthread_mutex_lock(&lock);
	r = handler_install();
	atomic_store(&active, r == 0);
	(void)pthread_mutex_unlock(&lock);
	return r;
}

void
gpc_page_signal_reinstall(void)
{
	struct sigaction found;

	if (!atomic_load(&active) || sigaction(SIGSEGV, NULL, &found) || action_is_ours(&found))
		return;
	(void)pthread_mutex_lock(&lock);
	if (handler_install())
		gpc_log(GPC_LOG_ERROR,
			"SIGSEGV handler replaced: managed memory cannot be fetched");
	(void)pthread_mutex_unlock(&lock);
}

static uint64_t
area_get_distance(unsigned int area, uint64_t base, uint64_t end) GP_LOCKED(lock)
{
	uint64_t from = atomic_load(&areas[area].base), to = atomic_load(&areas[area].end);

	if (end < from)
		return from - end;
	return base > to ? base - to : 0;
}

void
gpc_page_signal_cover(uint64_t base, uint64_t size)
{
	uint64_t end = base + size;
	unsigned int count, best = 0;

	(void)pthread_mutex_lock(&lock);
	count = atomic_load(&area_count);
	for (unsigned int i = 1; i < count; i++) {
		if (area_get_distance(i, base, end) < area_get_distance(best, base, end))
			best = i;
	}
	if (count < AREAS && (count == 0 || area_get_distance(best, base, end) > NEAR)) {
		atomic_store(&areas[count].base, base);
		atomic_store(&areas[count].end, end);
		atomic_store(&area_count, count + 1);
	} else {
		if (base < atomic_load(&areas[best].base))
			atomic_store(&areas[best].base, base);
		if (end > atomic_load(&areas[best].end))
			atomic_store(&areas[best].end, end);
	}
	(void)pthread_mutex_unlock(&lock);
}

void
gpc_page_signal_forked(void)
{
	atomic_store(&active, false);
}
