/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/notify.h"

#include "base/clock.h"
#include "server/common/base/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A service manager that does not read its socket, which takes few messages, holds the daemon up
 * for no longer than this, and not again until it has read some. */
#define PATIENCE_S 2

static bool deaf;

/* Whether there is nobody to tell, or it has been told. */
static bool
tell(const char *state, int flags)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE_S };
	size_t length = path ? strlen(path) : 0;
	bool told;
	int fd;

	if (length < 2 || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return true;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	if (deaf)
		flags |= MSG_DONTWAIT;
	told = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) == 0 &&
	       (sendto(fd, state, strlen(state), MSG_NOSIGNAL | flags, (struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) >= 0 ||
		errno != EAGAIN);
	close(fd);
	if (told)
		deaf = false;
	return told;
}

void
gpd_notify(const char *state)
{
	if (tell(state, 0))
		return;
	deaf = true;
	gpd_warning("the service manager has not been told %.*s: it has not read "
		    "$NOTIFY_SOCKET",
		    (int)strcspn(state, "\n"), state);
}

void
gpd_notify_reloading(void)
{
	char state[64];

	(void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		       (unsigned long long)(gp_now_ns() / 1000));
	gpd_notify(state);
}

/* Milliseconds between two signs of life; 0: nobody asks for them. */
static int64_t
interval_ms(void)
{
	static int64_t interval = -1;
	const char *text, *pid;

	if (interval >= 0)
		return interval;
	text = getenv("WATCHDOG_USEC");
	pid = getenv("WATCHDOG_PID");
	if (pid && strtol(pid, NULL, 10) != getpid())
		text = NULL;
	/* Twice in its time, and once more. */
	interval = text ? strtoll(text, NULL, 10) / 3000 : 0;
	if (interval < 0)
		interval = 0;
	return interval;
}

void
gpd_notify_alive(int64_t now_ms)
{
	static int64_t next_ms;

	if (interval_ms() == 0 || now_ms < next_ms)
		return;
	next_ms = now_ms + interval_ms();
	/* One that finds no room is as good as said: the manager has not read the ones before. */
	(void)tell("WATCHDOG=1", MSG_DONTWAIT);
}
