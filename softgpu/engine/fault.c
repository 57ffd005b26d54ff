/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/fault.h"

#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

/* In a library opened with dlopen(), only this model makes the variable safe to read in a signal
 * handler. */
static _Thread_local struct gs_fault_scope *volatile current
	__attribute__((tls_model("initial-exec")));

/* A fault within the previous handler must not be passed on to it again. */
static _Thread_local volatile sig_atomic_t is_passing __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous_segv;
static struct sigaction previous_bus;

static void
pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *previous = number == SIGBUS ? &previous_bus : &previous_segv;

	/* Without a previous handler the access is repeated and ends the process, as it would have
	 * without this library. */
	if (is_passing || previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN) {
		signal(number, SIG_DFL);
		return;
	}
	is_passing = 1;
	if (previous->sa_flags & SA_SIGINFO)
		previous->sa_sigaction(number, info, context);
	else
		previous->sa_handler(number);
	is_passing = 0;
}

static void
on_fault(int number, siginfo_t *info, void *context)
{
	struct gs_fault_scope *scope = current;
	uint64_t address = (uint64_t)(uintptr_t)info->si_addr;

	if (!scope || address < GS_VA_BASE || address >= GS_VA_END) {
		pass_on(number, info, context);
		return;
	}
	scope->address = address;
	siglongjmp(scope->jump, 1);
}

static bool
is_ours(int number, struct sigaction *found)
{
	return sigaction(number, NULL, found) == 0 && (found->sa_flags & SA_SIGINFO) &&
	       found->sa_sigaction == on_fault;
}

static void
install(int number, struct sigaction *previous)
{
	struct sigaction found;
	struct sigaction action;

	if (is_ours(number, &found))
		return;
	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigemptyset(&action.sa_mask);
	*previous = found;
	(void)sigaction(number, &action, NULL);
}

void
gs_fault_catch(void)
{
	struct sigaction found;

	if (is_ours(SIGSEGV, &found))
		return;
	pthread_mutex_lock(&lock);
	install(SIGSEGV, &previous_segv);
	install(SIGBUS, &previous_bus);
	pthread_mutex_unlock(&lock);
}

void
gs_fault_set_scope(struct gs_fault_scope *scope)
{
	current = scope;
}
