/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/supervisor.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/common/base/log.h"
#include "server/common/base/nonblocking.h"
#include "server/common/base/privilege.h"
#include "server/supervisor/admin/manage.h"
#include "server/supervisor/admission/admission.h"
#include "server/supervisor/admission/listen.h"
#include "server/supervisor/auth/connection.h"
#include "server/supervisor/auth/tls_files.h"
#include "server/supervisor/config_report.h"
#include "server/supervisor/device_monitor.h"
#include "server/supervisor/notify.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/worker_pool.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define STOP_MS 3000
/* Maximum time between iterations, and so the resolution of deadlines. */
#define POLL_MS 50
/* Malloc arenas: with one per thread, each of many would retain the memory of a TLS handshake. */
#define ARENAS 2
/* Signals and connection events. */
#define FIXED_FDS 2

struct supervisor {
	const struct gpd_options *options;
	struct gpd_listen listen;
	int signal_fd;
	struct pollfd fds[FIXED_FDS + GPD_LISTEN_MAX + GPD_WORKERS_MAX + GPD_DEVICE_MONITORS_MAX +
			  GPD_ADMIN_POLL_MAX];
	struct gpd_admission admission;
	struct gpd_quota quota;
	struct gpd_manager manager;
	struct gpd_worker_pool worker_pool;
	struct gpd_device_monitor device_monitor;
	bool announced; /* the daemon has reported that it serves clients */
	bool stopping;
	int64_t stop_ms;
	int status; /* exit status; -1 while running */
};

static void
supervisor_stop(struct supervisor *s)
{
	if (s->stopping) {
		s->stop_ms = 0;
		return;
	}
	s->stopping = true;
	s->stop_ms = gp_now_ms() + STOP_MS;
	gpd_info("stopping");
	gpd_notify("STOPPING=1");
	gpd_listen_close(&s->listen);
	gpd_admission_stop(&s->admission);
	gpd_worker_pool_stop(&s->worker_pool);
	gpd_device_monitor_stop(&s->device_monitor);
}

static void
read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	struct gpd_reload_report reloaded;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			gpd_worker_pool_reap(&s->worker_pool);
			gpd_device_monitor_reap(&s->device_monitor);
		} else if (info.ssi_signo == SIGHUP) {
			gpd_reload(s->options, &s->manager, &reloaded);
		} else {
			supervisor_stop(s);
		}
	}
}

/* The user's name, for reports. Looked up outside of the main loop, as the lookup may query a name
 * server. */
static void
facts_set_user(struct supervisor *s)
{
	struct gpd_report_facts *facts = &s->manager.source.facts;
	const struct passwd *user = getpwuid(geteuid());

	if (user)
		(void)snprintf(facts->user, sizeof(facts->user), "%s", user->pw_name);
	else
		(void)snprintf(facts->user, sizeof(facts->user), "%u", (unsigned int)geteuid());
}

/* The daemon's addresses, for reports. */
static void
facts_set_addresses(struct supervisor *s)
{
	struct gpd_report_facts *facts = &s->manager.source.facts;

	for (int i = 0; i < s->listen.count; i++)
		gpd_listen_text(&s->listen, i, facts->addresses[facts->address_count++]);
	(void)snprintf(facts->metrics, sizeof(facts->metrics), "%s",
		       s->manager.metrics.http ? s->manager.metrics.url : "");
}

static void
supervisor_announce(struct supervisor *s)
{
	s->announced = true;
	facts_set_addresses(s);
	gpd_config_report_start(&s->admission, s->options);
	if (geteuid() == 0 && !s->options->user)
		gpd_warning("running as root: no user " GPD_PRIVILEGE_USER
			    ": run systemd-sysusers, or use --user=NAME or --user=root");
	gpd_manager_announce(&s->manager, s->options->print_address);
	gpd_listen_announce(&s->listen, s->options->print_address);
	gpd_notify("READY=1");
}

/* One iteration: handles deadlines, waits at most POLL_MS for events, and handles them. */
static void
loop_iterate(struct supervisor *s) GP_LOCKED(s->manager.source.lock)
{
	struct pollfd *fds = s->fds;
	int listening, workers, monitors, first_admin, admins, ready;

	gpd_admission_check_deadlines(&s->admission);
	gpd_worker_pool_check(&s->worker_pool, gp_now_ms());
	gpd_device_monitor_check(&s->device_monitor, gp_now_ms());
	gpd_notify_watchdog(gp_now_ms());
	gpd_config_report_expiry(&s->admission, gp_now_ms());
	gpd_usage_check(&s->manager.usage, gp_now_ms());
	fds[0] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = gpd_connection_events_fd(), .events = POLLIN };
	listening = gpd_listen_poll(&s->listen, gp_now_ms(), fds + FIXED_FDS);
	workers = gpd_worker_pool_poll(&s->worker_pool, fds + FIXED_FDS + listening);
	monitors =
		gpd_device_monitor_poll(&s->device_monitor, fds + FIXED_FDS + listening + workers);
	first_admin = FIXED_FDS + listening + workers + monitors;
	admins = gpd_admin_poll(&s->manager.admin, fds + first_admin);
	pthread_mutex_unlock(&s->manager.source.lock);
	gpd_nonblocking_end();
	ready = poll(fds, (nfds_t)(first_admin + admins), POLL_MS);
	gpd_nonblocking_begin();
	pthread_mutex_lock(&s->manager.source.lock);
	if (ready < 0)
		return;

	/* Workers may be started while their messages are read, but none is removed before the
	 * signals are read. */
	gpd_worker_pool_serve(&s->worker_pool, fds + FIXED_FDS + listening);
	gpd_device_monitor_serve(&s->device_monitor);
	gpd_listen_accept(&s->listen, fds + FIXED_FDS, listening, &s->admission, gp_now_ms());
	if (fds[1].revents)
		gpd_admission_handle_events(&s->admission);
	if (fds[0].revents)
		read_signals(s);
	if (s->worker_pool.served && !s->announced && !s->stopping) {
		gpd_device_monitor_check(&s->device_monitor, gp_now_ms());
		supervisor_announce(s);
	}
	gpd_admin_serve(&s->manager.admin, fds + first_admin, gp_now_ms());
}

/* Callbacks of the admin socket. */

static bool
callback_retire_worker(void *arg, pid_t worker)
{
	struct supervisor *s = arg;

	return gpd_worker_pool_retire(&s->worker_pool, worker);
}

static void
callback_reload(void *arg, struct gpd_reload_report *reloaded)
{
	struct supervisor *s = arg;

	gpd_reload(s->options, &s->manager, reloaded);
}

static int
callback_enable_device(void *arg, uint32_t device, char *error, size_t size)
{
	struct supervisor *s = arg;

	return gpd_device_monitor_enable(&s->device_monitor, device, error, size);
}

static const struct gpd_manager_callbacks manager_callbacks = {
	.retire = callback_retire_worker,
	.enable_device = callback_enable_device,
	.reload = callback_reload,
};

/* Prints why the daemon does not start. Returns -1. */
static int
startup_fail(const char *why)
{
	fprintf(stderr, "gpupoold: %s\n", why);
	return -1;
}

/* The same for a file: prints how to fix the permissions if the daemon's user cannot read it. */
static int
startup_fail_file(const char *path, const char *why)
{
	char error[GPD_CONFIG_ERROR_MAX];

	if (path && gpd_privilege_require_readable(path, error, sizeof(error)))
		return startup_fail(error);
	return startup_fail(why);
}

/* If the daemon cannot read the file again, tokens or certificates could not be revoked at run
 * time. */
static int
file_check_readable_later(const struct gpd_shared_file *file)
{
	char error[GPD_TOKEN_ERROR_MAX];

	if (file->status.st_nlink &&
	    gpd_privilege_require_readable(file->path, error, sizeof(error)))
		return startup_fail(error);
	gpd_privilege_warn_unreadable(file->path);
	return 0;
}

/* After everything is open. Files that must be read again later are checked at once. */
static int
drop_privileges(struct supervisor *s)
{
	char error[GPD_CONFIG_ERROR_MAX];
	const struct gpd_authentication *authentication = &s->admission.authentication;
	uid_t before = geteuid();
	struct gp_tls *tls;

	if (gpd_privilege_drop(s->options->user, error, sizeof(error)))
		return startup_fail(error);
	if (geteuid() == before)
		return 0;
	gpd_privilege_warn_unreadable(gpd_options_config(s->options));
	if (file_check_readable_later(&authentication->store.file) ||
	    (authentication->crl_state.crl &&
	     file_check_readable_later(&authentication->crl_state.file)))
		return -1;
	if (gpd_tls_read(s->options, s->quota.tenants.config, &tls, error, sizeof(error)))
		gpd_warning("certificate not readable by the daemon's user, a reload will fail: %s",
			    error);
	else
		gp_tls_unref(tls);
	return 0;
}

static int
supervisor_init(struct supervisor *s)
{
	const struct gpd_config *config = s->quota.tenants.config;
	char error[GPD_CONFIG_ERROR_MAX];
	struct rlimit files;
	struct gp_tls *tls;
	sigset_t signals;

	(void)mallopt(M_ARENA_MAX, ARENAS);
	/* Every session needs a few descriptors; the default soft limit exists for programs that
	 * use select(). */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0 || gpd_connection_setup()) {
		fprintf(stderr, "gpupoold: cannot start: %s\n", strerror(errno));
		return -1;
	}
	if (gpd_authentication_open(&s->admission.authentication, config, s->options->tokens,
				    s->options->insecure, error, sizeof(error)))
		return startup_fail_file(s->admission.authentication.store.file.path, error);
	if (gpd_tls_read(s->options, config, &tls, error, sizeof(error)))
		return startup_fail(error);
	gpd_tls_set(tls);
	if (gpd_authentication_open_crl(&s->admission.authentication, config, s->options->crl,
					error, sizeof(error)))
		return startup_fail(error);
	gp_listen_set_owner(gpd_privilege_target_uid(s->options->user));
	if (gpd_listen_open(&s->listen, s->options) || gpd_manager_open(&s->manager, s->options))
		return -1;
	if (drop_privileges(s))
		return -1;
	facts_set_user(s);
	gpd_worker_cgroups_open(&s->worker_pool.cgroups, "", s->manager.source.facts.no_cgroups);
	return gpd_manager_open_usage(&s->manager);
}

int
gpd_supervisor_run(const struct gpd_options *options) GP_LOCK_UNCHECKED
{
	struct supervisor s = { .options = options, .status = -1, .signal_fd = -1 };
	char error[GPD_CONFIG_ERROR_MAX];

	if (gpd_quota_init(&s.quota, gpd_options_config(options), error))
		return -startup_fail_file(gpd_options_config(options), error);
	if (gpd_admission_init(&s.admission, &s.quota, options->sessions_max, options->lanes_max))
		return -startup_fail("out of memory");
	gpd_manager_init(&s.manager, &s.admission, &manager_callbacks, &s);
	gpd_worker_pool_init(&s.worker_pool, options, &s.admission);
	gpd_device_monitor_init(&s.device_monitor, &s.worker_pool);
	if (supervisor_init(&s))
		s.status = 1;
	gpd_nonblocking_begin();
	while (s.status < 0) {
		loop_iterate(&s);
		if (s.worker_pool.start_failed)
			s.status = 1;
		if (s.stopping && (!s.admission.workers || s.stop_ms <= gp_now_ms()))
			s.status = 0;
	}
	gpd_nonblocking_end();
	gpd_device_monitor_fini(&s.device_monitor);
	gpd_worker_pool_fini(&s.worker_pool);
	gpd_worker_cgroups_close(&s.worker_pool.cgroups);
	gpd_listen_close(&s.listen);
	gpd_manager_fini(&s.manager);
	gpd_admission_fini(&s.admission);
	gpd_authentication_close(&s.admission.authentication);
	gpd_tls_set(NULL);
	gpd_quota_fini(&s.quota);
	if (s.signal_fd >= 0)
		close(s.signal_fd);
	return s.status;
}
