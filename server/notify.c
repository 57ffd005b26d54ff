/* SPDX-License-Identifier: Apache-2.0 */
#include "server/notify.h"

#include "server/clock.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void
gpd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int fd;

	if (length < 2 || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Nobody listening is nobody to tell. */
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		state = NULL;
	close(fd);
}

void
gpd_notify_reloading(void)
{
	char state[64];

	(void)snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		       (unsigned long long)(gpd_now_ns() / 1000));
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

static int64_t next_ms;

void
gpd_notify_alive(int64_t now_ms)
{
	if (interval_ms() == 0 || now_ms < next_ms)
		return;
	next_ms = now_ms + interval_ms();
	gpd_notify("WATCHDOG=1");
}

int64_t
gpd_notify_deadline(void)
{
	return interval_ms() ? next_ms : INT64_MAX;
}
