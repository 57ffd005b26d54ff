/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/request.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int
ctl_fail(const char *format, ...)
{
	va_list args;

	(void)fflush(stdout);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	return -1;
}

void
ctl_warn(const char *format, ...)
{
	va_list args;

	(void)fflush(stdout);
	fprintf(stderr, "gpupoolctl: warning: ");
	va_start(args, format);
	(void)vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
}

/* Returns a descriptor, or a negative errno. */
static int
socket_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, r;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	r = -errno;
	if (fd >= 0)
		close(fd);
	return r;
}

static int
socket_connect_error(const char *path, int r)
{
	if (r == -ENAMETOOLONG)
		return ctl_fail("%s: too long for a socket's path", path);
	if (r == -ENOENT || r == -ECONNREFUSED)
		return ctl_fail("no daemon listens at %s: %s; see \"systemctl status gpupoold\"",
				path, strerror(-r));
	if (r == -EACCES)
		return ctl_fail("%s: %s: only root, the daemon's user and members of group "
				"gpupool-read have access",
				path, strerror(-r));
	return ctl_fail("%s: %s", path, strerror(-r));
}

/* Tries the user's own daemon, then the system's, whose state members of a group may read. */
static int
open_socket(const struct ctl *ctl)
{
	static const char system[] = "/run/gpupool/admin.sock";
	char own[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *path = ctl->socket;
	int fd = -ENOENT;

	if (!path && gp_admin_get_default_path(own, sizeof(own)) == 0)
		path = own;
	if (path)
		fd = socket_connect(path);
	if (!ctl->socket && (fd == -ENOENT || fd == -ECONNREFUSED)) {
		int other = socket_connect(system);

		if (other >= 0)
			return other;
		if (!path || other == -EACCES) {
			path = system;
			fd = other;
		}
	}
	return fd >= 0 ? fd : socket_connect_error(path, fd);
}

static int
socket_write(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t done = send(fd, bytes, size, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return ctl_fail("the daemon does not read the request: %s",
					strerror(errno));
		bytes += done;
		size -= (size_t)done;
	}
	return 0;
}

static int
socket_read(int fd, uint8_t *bytes, size_t size, int64_t deadline_ms)
{
	while (size) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = deadline_ms - gp_now_ms();
		ssize_t got;

		if (deadline_ms == INT64_MAX)
			left = -1;
		else if (left < 0)
			left = 0;
		if (poll(&wait, 1, left > 60000 ? 60000 : (int)left) == 0 &&
		    gp_now_ms() >= deadline_ms)
			return ctl_fail("no reply from the daemon: timed out");
		if (!wait.revents)
			continue;
		got = recv(fd, bytes, size, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ctl_fail("no reply from the daemon: %s", strerror(errno));
		if (got == 0)
			return ctl_fail("the daemon closed the connection without a reply");
		bytes += got;
		size -= (size_t)got;
	}
	return 0;
}

static int
read_reply(int fd, int64_t deadline_ms, Gpupool__AdminReply **reply_p)
{
	uint8_t header[GP_ADMIN_HEADER_SIZE], *bytes;
	Gpupool__AdminReply *reply = NULL;
	size_t size;

	if (socket_read(fd, header, sizeof(header), deadline_ms))
		return -1;
	size = gp_admin_get_size(header);
	if (size > GP_ADMIN_REPLY_MAX)
		return ctl_fail("the peer is not gpupoold");
	bytes = malloc(size + 1);
	if (!bytes)
		return ctl_fail("out of memory");
	if (socket_read(fd, bytes, size, deadline_ms)) {
		free(bytes);
		return -1;
	}
	reply = gp_admin_decode_reply(bytes, size);
	free(bytes);
	if (!reply)
		return ctl_fail("the peer is not gpupoold");
	*reply_p = reply;
	return 0;
}

int
ctl_request(const struct ctl *ctl, const Gpupool__AdminRequest *request, int64_t timeout_ms,
	    Gpupool__AdminReply **reply_p)
{
	int64_t deadline = timeout_ms == CTL_NO_TIMEOUT ? INT64_MAX : gp_now_ms() + timeout_ms;
	Gpupool__AdminReply *reply = NULL;
	uint8_t *bytes;
	size_t size;
	int fd = open_socket(ctl), r;

	if (fd < 0)
		return -1;
	bytes = gp_admin_pack_request(request, &size);
	r = bytes ? socket_write(fd, bytes, size) : ctl_fail("out of memory");
	free(bytes);
	if (r == 0)
		r = read_reply(fd, deadline, &reply);
	close(fd);
	if (r)
		return -1;
	if (reply->error[0]) {
		ctl_fail("%s", reply->error);
		gp_admin_free_reply(reply);
		return -1;
	}
	if (reply->warning[0])
		ctl_warn("%s", reply->warning);
	*reply_p = reply;
	return 0;
}

int
ctl_request_status(const struct ctl *ctl, const Gpupool__AdminRequest *request, int64_t timeout_ms)
{
	Gpupool__AdminReply *reply;

	if (ctl_request(ctl, request, timeout_ms, &reply))
		return -1;
	gp_admin_free_reply(reply);
	return 0;
}

static bool
lines_are_valid(Gpupool__AdminLine *const *lines, size_t count, size_t devices)
{
	for (size_t i = 0; i < count; i++) {
		if (lines[i]->device >= devices)
			return false;
	}
	return true;
}

/* Returns whether all device indices in the report are valid. */
static bool
report_is_valid(const Gpupool__AdminReport *report)
{
	bool valid = true;

	for (size_t i = 0; i < report->n_units; i++)
		valid = valid && report->units[i]->device < report->n_devices;
	for (size_t i = 0; i < report->n_tenants; i++)
		valid = valid && lines_are_valid(report->tenants[i]->lines,
						 report->tenants[i]->n_lines, report->n_devices);
	for (size_t i = 0; i < report->n_sessions; i++)
		valid = valid && lines_are_valid(report->sessions[i]->lines,
						 report->sessions[i]->n_lines, report->n_devices);
	return valid;
}

int
ctl_request_report(const struct ctl *ctl, uint64_t session, Gpupool__AdminReply **reply_p)
{
	Gpupool__AdminReportRequest wanted = GPUPOOL__ADMIN_REPORT_REQUEST__INIT;
	Gpupool__AdminRequest request = GPUPOOL__ADMIN_REQUEST__INIT;
	int r;

	wanted.session = session;
	request.body_case = GPUPOOL__ADMIN_REQUEST__BODY_REPORT;
	request.report = &wanted;
	if (ctl_request(ctl, &request, CTL_TIMEOUT_MS, reply_p))
		return -1;
	if ((*reply_p)->report && report_is_valid((*reply_p)->report))
		return 0;
	r = (*reply_p)->report ? ctl_fail("invalid report from the daemon")
			       : ctl_fail("the daemon sent no report");
	gp_admin_free_reply(*reply_p);
	return r;
}
