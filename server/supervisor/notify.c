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
#include <sys/un.h>
#include <unistd.h>

/* Queue of states for a manager that does not read its socket. */
#define WAITING_MAX 8
#define STATE_MAX 64

static char waiting[WAITING_MAX][STATE_MAX];
static int waiting_count;

/* Returns true if the state was sent or there is no service manager. */
static bool
state_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	bool sent;
	int fd;

	if (length < 2 || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return true;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
		      (struct sockaddr *)&address,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) >= 0 ||
	       errno != EAGAIN;
	close(fd);
	return sent;
}

/* In the order in which they were reported. */
static void
pending_send(void)
{
	while (waiting_count && state_send(waiting[0])) {
		waiting_count--;
		memmove(waiting[0], waiting[1], (size_t)waiting_count * STATE_MAX);
	}
}

void
gpd_notify(const char *state)
{
	pending_send();
	if (!waiting_count && state_send(state))
		return;
	gpd_warning("cannot notify the service manager of %.*s: $NOTIFY_SOCKET is full",
		    (int)strcspn(state, "\n"), state);
	/* Drop the oldest state, which is the least relevant. */
	if (waiting_count == WAITING_MAX) {
		waiting_count--;
		memmove(waiting[0], waiting[1], (size_t)waiting_count * STATE_MAX);
	}
	(void)snprintf(waiting[waiting_count++], STATE_MAX, "%s", state);
}

void
gpd_notify_reloading(void)
{
	char state[STATE_MAX];

	(void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		       (unsigned long long)(gp_now_ns() / 1000));
	gpd_notify(state);
}

/* Returns the interval of keep-alives in ms; 0: none requested. */
static int64_t
watchdog_interval_ms(void)
{
	static int64_t interval = -1;
	const char *text, *pid;

	if (interval >= 0)
		return interval;
	text = getenv("WATCHDOG_USEC");
	pid = getenv("WATCHDOG_PID");
	if (pid && strtol(pid, NULL, 10) != getpid())
		text = NULL;
	/* A third of the timeout, so that two are sent with time to spare. */
	interval = text ? strtoll(text, NULL, 10) / 3000 : 0;
	if (interval < 0)
		interval = 0;
	return interval;
}

void
gpd_notify_watchdog(int64_t now_ms)
{
	static int64_t next_ms;

	pending_send();
	if (watchdog_interval_ms() == 0 || now_ms < next_ms)
		return;
	next_ms = now_ms + watchdog_interval_ms();
	/* If the socket is full it is not queued: earlier keep-alives are still unread. */
	(void)state_send("WATCHDOG=1");
}
