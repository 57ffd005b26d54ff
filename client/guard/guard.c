/* SPDX-License-Identifier: Apache-2.0 */
#include "client/guard/guard.h"

#include <signal.h>
#include <stdint.h>

__thread struct gpc_guard gpc_guard __attribute__((tls_model("initial-exec")));

/* Whether the current frame lies on the stack for signals: its address says nothing about frames of
 * the thread's own stack.  Nobody enters the library there but a signal handler. */
static bool
is_on_signal_stack(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

/* Stacks grow downwards. */
bool
gpc_guard_has_frame(const void *frame)
{
	return (uintptr_t)frame < (uintptr_t)gpc_guard.frame || is_on_signal_stack();
}
