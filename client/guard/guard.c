/* SPDX-License-Identifier: Apache-2.0 */
#include "client/guard/guard.h"

#include <signal.h>
#include <stdint.h>

__thread struct gpc_guard gpc_guard __attribute__((tls_model("initial-exec")));

/* Returns whether the current frame is on the alternate signal stack, where its address cannot be
 * compared with frames of the thread's own stack. Only signal handlers enter the library on that
 * stack. */
static bool
is_on_signal_stack(void)
{
	stack_t stack;

	return sigaltstack(NULL, &stack) == 0 && stack.ss_flags & SS_ONSTACK;
}

/* The comparison relies on stacks that grow downwards. */
bool
gpc_guard_has_frame(const void *frame)
{
	return (uintptr_t)frame < (uintptr_t)gpc_guard.frame || is_on_signal_stack();
}
