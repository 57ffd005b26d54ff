/* SPDX-License-Identifier: Apache-2.0 */
#include "fault.h"

#include "engine.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>

/* In a library opened late, only this model makes the variable safe to read in a handler. */
static _Thread_local struct gs_fault_scope *volatile current
	__attribute__((tls_model("initial-exec")));

static struct sigaction previous_segv;
static struct sigaction previous_bus;

static void
pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction *previous = number == SIGBUS ? &previous_bus : &previous_segv;

	if (previous->sa_flags & SA_SIGINFO) {
		previous->sa_sigaction(number, info, context);
	} else if (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN) {
		/* The access is tried again and now ends the process, as it would have. */
		signal(number, SIG_DFL);
	} else {
		previous->sa_handler(number);
	}
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

int
gs_fault_init(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	sigemptyset(&action.sa_mask);
	if (sigaction(SIGSEGV, &action, &previous_segv) != 0 ||
	    sigaction(SIGBUS, &action, &previous_bus) != 0)
		return GS_NOT_INITIALIZED;
	return GS_OK;
}

void
gs_fault_set_scope(struct gs_fault_scope *scope)
{
	current = scope;
}
