/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_limit.h"

#include <errno.h>
#include <time.h>

void
gp_sigxfsz_block(struct gp_sigxfsz *limit)
{
	sigset_t pending, signals;

	(void)sigemptyset(&pending);
	(void)sigpending(&pending);
	limit->is_pending = sigismember(&pending, SIGXFSZ) == 1;
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &signals, &limit->before);
}

void
gp_sigxfsz_restore(const struct gp_sigxfsz *limit)
{
	const struct timespec none = { 0 };
	int error = errno;
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGXFSZ);
	/* SIGXFSZ is sent to the thread that makes the call, so it is pending here. */
	if (!limit->is_pending)
		(void)sigtimedwait(&signals, NULL, &none);
	(void)pthread_sigmask(SIG_SETMASK, &limit->before, NULL);
	errno = error;
}
