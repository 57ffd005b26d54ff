/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/doctor.h"
#include "server/common/base/pool_folder.h"
#include "server/common/base/size_text.h"
#include "transport/url.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 2000

/* Returns 0, or an errno. */
static int
address_connect(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? errno : 0;

	if (r == 0 && connect(fd, address->ai_addr, address->ai_addrlen))
		r = errno;
	if (r == EINPROGRESS) {
		struct pollfd wait = { .fd = fd, .events = POLLOUT };
		socklen_t size = sizeof(r);

		if (poll(&wait, 1, CONNECT_MS) <= 0)
			r = ETIMEDOUT;
		else
			(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &r, &size);
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static int
host_connect(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	int r = EHOSTUNREACH;

	if (getaddrinfo(host, port, &hints, &list))
		return EADDRNOTAVAIL;
	for (const struct addrinfo *a = list; a && r; a = a->ai_next)
		r = address_connect(a);
	freeaddrinfo(list);
	return r;
}

/* A wildcard address includes the loopback address. */
static const char *
url_get_local_host(const struct gp_url *url)
{
	if (strcmp(url->host, "0.0.0.0") == 0 || strcmp(url->host, "*") == 0)
		return "127.0.0.1";
	return strcmp(url->host, "::") == 0 ? "::1" : url->host;
}

static bool
is_loopback(const char *host)
{
	return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
	       strcmp(host, "localhost") == 0;
}

static void
check_address(struct ctl_doctor *doctor, const char *text)
{
	char error[256], port[16];
	struct gp_url url;
	int r;

	if (gp_url_parse(text, &url, error, sizeof(error)) || strcmp(url.scheme, "unix") == 0)
		return;
	(void)snprintf(port, sizeof(port), "%u", url.port);
	r = host_connect(url_get_local_host(&url), port);
	if (r)
		ctl_problem(doctor, "address: %s: %s", text, strerror(r));
	else if (is_loopback(url.host))
		ctl_ok(doctor,
		       "address: %s is reachable from this machine only: use --listen "
		       "tls://0.0.0.0:%u for others",
		       text, url.port);
	else
		ctl_ok(doctor,
		       "address: %s is reachable from this machine; other machines need TCP port "
		       "%u",
		       text, url.port);
}

/* Overcommitted quotas are allowed, as not all tenants use theirs at the same time. */
static void
check_quota_sum(struct ctl_doctor *doctor, const Gpupool__AdminReport *report,
		const Gpupool__AdminDevice *device)
{
	char sum_text[GPD_SIZE_TEXT_MAX], all[GPD_SIZE_TEXT_MAX];
	uint64_t sum = 0;

	for (size_t t = 0; t < report->n_tenants; t++) {
		for (size_t i = 0; i < report->tenants[t]->n_lines; i++) {
			const Gpupool__AdminLine *line = report->tenants[t]->lines[i];

			if (line->device == device->ordinal && line->memory_max != UINT64_MAX)
				sum += line->memory_max;
		}
	}
	if (sum > device->memory_total)
		ctl_note(doctor,
			 "memory: device %u: the quotas of all tenants are %s, more than its %s: "
			 "they cannot all be used at once",
			 device->ordinal, gpd_size_format(sum, sum_text),
			 gpd_size_format(device->memory_total, all));
}

static void
check_driver(struct ctl_doctor *doctor, const Gpupool__AdminReport *report)
{
	if (report->software && access("/dev/nvidiactl", F_OK) == 0)
		ctl_problem(doctor, "driver: the daemon serves its software device, though this "
				    "machine has NVIDIA's driver: see its log");
	else if (report->software)
		ctl_note(doctor, "driver: the daemon serves its software device: no GPU of "
				 "NVIDIA's was found");
	else
		ctl_ok(doctor, "driver: CUDA %u.%u", report->driver_version / 1000,
		       report->driver_version % 1000 / 10);
	if (report->n_devices == 0)
		ctl_problem(doctor, "driver: no worker has reported a device yet");
}

/* Changes since the configuration was read are not in force. */
static void
check_config(struct ctl_doctor *doctor, const Gpupool__AdminReport *report)
{
	char path[CTL_PATH_MAX];
	bool there = ctl_pool_file(doctor->folder, GPD_FILE_CONFIG, path, sizeof(path)) == 0 &&
		     access(path, F_OK) == 0;

	if (report->config[0] && access(report->config, F_OK))
		ctl_problem(doctor, "configuration: %s, which the daemon has read: %s",
			    report->config, strerror(errno));
	else if (report->config[0] && there && strcmp(report->config, path) != 0)
		ctl_note(doctor, "configuration: the daemon has read %s, and not %s",
			 report->config, path);
	else if (!report->config[0] && there)
		ctl_problem(doctor,
			    "configuration: %s exists, but the daemon has read none: run "
			    "gpupoolctl reload, or use --config",
			    path);
}

void
ctl_doctor_daemon(struct ctl_doctor *doctor, const Gpupool__AdminReport *report)
{
	ctl_ok(doctor, "daemon: version %s, process %u, user %s", report->version, report->pid,
	       report->user);
	if ((int64_t)report->started_s > (int64_t)time(NULL))
		ctl_problem(doctor, "clock: set back since the daemon started");
	if (report->draining)
		ctl_note(doctor, "daemon: draining: gpupoolctl drain --undo admits sessions again");
	if (report->workers_lost)
		ctl_note(doctor, "daemon: %llu workers exited unexpectedly: see its log",
			 (unsigned long long)report->workers_lost);
	check_config(doctor, report);
	check_driver(doctor, report);
	if (report->no_cgroups[0])
		ctl_note(doctor, "control groups: workers have none of their own: %s",
			 report->no_cgroups);
	else
		ctl_ok(doctor, "control groups: each worker has its own");
	for (size_t i = 0; i < report->n_addresses; i++)
		check_address(doctor, report->addresses[i]);
	for (size_t d = 0; d < report->n_devices; d++) {
		if (report->devices[d]->sick)
			ctl_problem(doctor,
				    "device %u is sick: %s: repair it, then run gpupoolctl device "
				    "enable %u",
				    report->devices[d]->ordinal, report->devices[d]->reason,
				    report->devices[d]->ordinal);
		check_quota_sum(doctor, report, report->devices[d]);
	}
}
