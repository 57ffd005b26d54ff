/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor.h"

#include "server/admission.h"
#include "server/child.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/manage.h"
#include "server/notify.h"
#include "server/peer.h"
#include "server/privilege.h"
#include "server/tls.h"

#include <cuda.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKER_START_MS 120000
#define WORKER_LOST_MS 1500
/* How long new sessions wait for the work of clients that are gone. */
#define BUSY_MS 2000
#define STOP_MS 3000
/* A worker that lives for less, and dies of itself, may die of what it does at its start. */
#define QUICK_MS 10000
#define QUICK_DEATHS_MAX 5
#define BACKOFF_MS 5000

/* Signals and the peers' events. */
#define FIXED_FDS 2

struct supervisor {
	const struct gpd_options *options;
	struct gpd_listen listen;
	int signal_fd;
	struct pollfd *fds;
	size_t fds_room;
	struct gpd_admission admission;
	struct gpd_quota quota;
	struct gpd_manager manager;
	struct gpd_child *children;
	struct gpd_child *worker;    /* the one that is starting or serving; NULL: none */
	struct gpd_child *successor; /* starts, to take the serving worker's place */
	int64_t start_worker_ms;     /* when to start one, if there is none */
	int quick_deaths;
	bool served; /* a worker was ready once */
	bool stopping;
	int64_t stop_ms;
	int status; /* exit status, once >= 0 */
};

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Workers. */

static struct gpd_child *
start_child(struct supervisor *s)
{
	struct gpd_child *child =
		gpd_child_start(s->options->driver, s->options->rdma, s->quota.fd);
	int64_t now = now_ms();

	if (!child) {
		gpd_error("no worker can be started: %m");
		return NULL;
	}
	child->started_ms = now;
	child->deadline_ms = now + WORKER_START_MS;
	child->next = s->children;
	s->children = child;
	gpd_debug("worker %d starts", (int)child->pid);
	return child;
}

static void
start_worker(struct supervisor *s)
{
	s->worker = s->successor ? s->successor : start_child(s);
	s->successor = NULL;
	s->start_worker_ms = s->worker ? INT64_MAX : now_ms() + BACKOFF_MS;
}

/* The worker serves nobody new from now on. */
static void
retire_worker(struct supervisor *s, struct gpd_child *child, int64_t start_ms)
{
	child->state = GPD_CHILD_ENDING;
	if (s->successor == child)
		s->successor = NULL;
	if (s->worker != child)
		return;
	s->worker = NULL;
	gpd_admission_set_worker(&s->admission, NULL, now_ms());
	s->start_worker_ms = s->stopping ? INT64_MAX : start_ms;
}

/* Its sessions go on, and it ends with the last one. */
static void
tell_to_retire(struct supervisor *s, struct gpd_child *child)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_RETIRE };

	retire_worker(s, child, 0);
	if (gpd_channel_post(&child->channel, &header, NULL, 0, -1))
		(void)kill(child->pid, SIGKILL);
}

/* Without a word if it cannot be: then the worker goes on. */
static void
worker_stale(struct supervisor *s, struct gpd_child *child)
{
	if (child == s->worker && child->state == GPD_CHILD_READY && !s->successor && !s->stopping)
		s->successor = start_child(s);
}

static void
successor_ready(struct supervisor *s)
{
	struct gpd_child *old = s->worker, *child = s->successor;

	s->successor = NULL;
	/* Unless it has died meanwhile. */
	if (old) {
		gpd_info("worker %d: its clients' kernels allocated memory: worker %d takes its "
			 "place",
			 (int)old->pid, (int)child->pid);
		tell_to_retire(s, old);
	}
	s->worker = child;
	s->start_worker_ms = INT64_MAX;
}

/* Asked for by the admission. */
static struct gpd_child *
start_alone(void *arg)
{
	struct gpd_child *child = start_child(arg);

	if (child)
		child->alone = true;
	return child;
}

static void
alone_ready(struct supervisor *s, struct gpd_child *child)
{
	if (!s->stopping && gpd_admission_alone_ready(&s->admission, child, now_ms()))
		return;
	tell_to_retire(s, child);
}

static void
worker_ready(struct supervisor *s, struct gpd_child *child,
	     const struct gpd_channel_message *message)
{
	child->facts = gpupool__welcome__unpack(NULL, message->size, message->data);
	if (!child->facts || child->state != GPD_CHILD_STARTING)
		return;
	child->state = GPD_CHILD_READY;
	child->deadline_ms = INT64_MAX;
	for (size_t i = 0; i < child->facts->n_devices; i++)
		gpd_info("worker %d: device %d is %s, %llu MiB", (int)child->pid,
			 child->facts->devices[i]->ordinal, child->facts->devices[i]->name,
			 (unsigned long long)(child->facts->devices[i]->total_memory >> 20));
	gpd_tenants_set_devices(&s->quota.tenants, child->facts);
	gpd_roster_set_devices(&s->manager.roster, child->facts);
	if (child->alone) {
		alone_ready(s, child);
		return;
	}
	if (s->successor == child && !s->stopping)
		successor_ready(s);
	if (s->worker == child)
		gpd_admission_set_worker(&s->admission, child, now_ms());
	if (!s->served) {
		gpd_manager_announce(&s->manager, s->options->print_address);
		gpd_listen_announce(&s->listen, s->options->print_address);
		if (geteuid() == 0 && !s->options->user)
			gpd_info("the daemon runs as root: --user, or a user " GPD_PRIVILEGE_USER
				 ", would do");
		gpd_notify("READY=1");
	}
	s->served = true;
}

static void
worker_failed(struct supervisor *s, struct gpd_child *child,
	      const struct gpd_channel_message *message)
{
	char text[1024];

	gpd_channel_text(message, text, sizeof(text));
	retire_worker(s, child, now_ms() + BACKOFF_MS);
	if (!s->served && !child->alone) {
		fprintf(stderr, "gpupoold: %s\n", text);
		s->status = 1;
		return;
	}
	gpd_error("worker %d cannot start: %s", (int)child->pid, text);
	gpd_admission_worker_gone(&s->admission, child, CUDA_ERROR_SYSTEM_NOT_READY, text);
}

static void
worker_lost(struct supervisor *s, struct gpd_child *child,
	    const struct gpd_channel_message *message)
{
	char text[1024];

	gpd_channel_text(message, text, sizeof(text));
	gpd_error("worker %d has lost its GPU contexts: %s", (int)child->pid, text);
	child->deadline_ms = now_ms() + WORKER_LOST_MS;
	retire_worker(s, child, 0);
	gpd_admission_worker_gone(&s->admission, child, message->header.result, text);
}

/* While work of a client that is gone goes on, the worker cannot load the code of new ones. */
static void
worker_busy(struct supervisor *s, struct gpd_child *child,
	    const struct gpd_channel_message *message)
{
	child->busy += message->header.result ? 1 : -1;
	if (child != s->worker || child->state != GPD_CHILD_READY)
		return;
	if (message->header.result && child->busy == 1)
		child->busy_ms = now_ms();
	gpd_admission_set_worker(&s->admission, child->busy ? NULL : child, now_ms());
}

/* It does not end: the sessions there go on, new ones get another worker. */
static void
replace_busy_worker(struct supervisor *s)
{
	gpd_warning("worker %d: the work of a client that is gone goes on: new clients get "
		    "another worker",
		    (int)s->worker->pid);
	tell_to_retire(s, s->worker);
}

static bool
is_busy(const struct gpd_child *child)
{
	return child && child->state == GPD_CHILD_READY && child->busy > 0;
}

static void
read_channel(struct supervisor *s, struct gpd_child *child)
{
	struct gpd_channel_message message;
	int r;

	while ((r = gpd_channel_recv(&child->channel, false, &message)) == 0) {
		if (message.fd >= 0)
			close(message.fd);
		switch (message.header.type) {
		case GPD_CHANNEL_READY:
			worker_ready(s, child, &message);
			break;
		case GPD_CHANNEL_FAILED:
			worker_failed(s, child, &message);
			break;
		case GPD_CHANNEL_LOST:
			worker_lost(s, child, &message);
			break;
		case GPD_CHANNEL_OPENED:
			gpd_admission_opened(&s->admission, child, &message, now_ms());
			break;
		case GPD_CHANNEL_BUSY:
			worker_busy(s, child, &message);
			break;
		case GPD_CHANNEL_STALE:
			worker_stale(s, child);
			break;
		case GPD_CHANNEL_CAME:
			gpd_admission_lane_came(&s->admission, child, &message);
			break;
		case GPD_CHANNEL_LANE_REFUSED:
			gpd_admission_lane_refused(&s->admission, child, &message, now_ms());
			break;
		case GPD_CHANNEL_CLOSED:
			gpd_admission_closed(&s->admission, child, &message, now_ms());
			break;
		}
	}
	if (r != GP_E_TIMEOUT)
		child->channel_closed = true;
}

static void
worker_exited(struct supervisor *s, struct gpd_child *child, int status)
{
	bool expected =
		child->state == GPD_CHILD_ENDING || s->stopping || (child->alone && status == 0);
	int64_t now = now_ms(), start = 0;
	char how[128], text[256];

	/* What it said last is still in the channel. */
	if (!child->channel_closed)
		read_channel(s, child);
	expected = expected || child->state == GPD_CHILD_ENDING;
	gpd_child_explain(status, how, sizeof(how));
	snprintf(text, sizeof(text), "the worker %s", how);
	if (!expected && !s->served && !child->alone) {
		fprintf(stderr, "gpupoold: the worker %s while it started\n", how);
		s->status = 1;
	} else if (!expected && child->alone) {
		gpd_error("worker %d %s", (int)child->pid, how);
	} else if (!expected) {
		s->quick_deaths = now - child->started_ms < QUICK_MS ? s->quick_deaths + 1 : 0;
		if (s->quick_deaths >= QUICK_DEATHS_MAX)
			start = now + BACKOFF_MS;
		gpd_error("worker %d %s%s", (int)child->pid, how,
			  start ? "; it is not the first, so the next one waits a little" : "");
	} else {
		gpd_debug("worker %d %s", (int)child->pid, how);
	}
	retire_worker(s, child, start);
	gpd_admission_worker_gone(&s->admission, child, CUDA_ERROR_UNKNOWN, text);
	gpd_quota_close_worker(&s->quota, child->pid);
	for (struct gpd_child **link = &s->children; *link; link = &(*link)->next) {
		if (*link == child) {
			*link = child->next;
			break;
		}
	}
	gpd_child_destroy(child);
}

static void
reap_workers(struct supervisor *s)
{
	struct gpd_child *next;

	for (struct gpd_child *child = s->children; child; child = next) {
		int status;

		next = child->next;
		if (waitpid(child->pid, &status, WNOHANG) == child->pid)
			worker_exited(s, child, status);
	}
}

static void
check_workers(struct supervisor *s, int64_t now)
{
	for (struct gpd_child *child = s->children; child; child = child->next) {
		if (child->deadline_ms > now)
			continue;
		gpd_warning("worker %d does not end or start in time: killed", (int)child->pid);
		(void)kill(child->pid, SIGKILL);
		child->deadline_ms = INT64_MAX;
	}
	if (is_busy(s->worker) && s->worker->busy_ms + BUSY_MS <= now)
		replace_busy_worker(s);
	if (!s->worker && !s->stopping && s->start_worker_ms <= now)
		start_worker(s);
}

/* The loop. */

static void
stop(struct supervisor *s)
{
	if (s->stopping) {
		s->stop_ms = 0;
		return;
	}
	s->stopping = true;
	s->stop_ms = now_ms() + STOP_MS;
	gpd_info("stopping");
	gpd_notify("STOPPING=1");
	gpd_listen_close(&s->listen);
	gpd_admission_stop(&s->admission);
	for (struct gpd_child *child = s->children; child; child = child->next) {
		struct gpd_channel_header header = { .type = GPD_CHANNEL_STOP };

		child->state = GPD_CHILD_ENDING;
		if (gpd_channel_post(&child->channel, &header, NULL, 0, -1))
			(void)kill(child->pid, SIGKILL);
	}
}

/* The certificate of the configuration that is, or the next one. */
static int
read_tls(const struct supervisor *s, bool next, struct gp_tls **tls_p, char *error)
{
	struct gpd_config *config = NULL;
	int r = 0;

	if (next)
		r = gpd_config_load(s->options->config, &config, error, GPD_CONFIG_ERROR_MAX);
	if (r == 0)
		r = gpd_tls_read(s->options, next ? config : s->quota.tenants.config, tls_p, error,
				 GPD_CONFIG_ERROR_MAX);
	gpd_config_free(config);
	return r;
}

/* The configuration and the certificate anew; if one of them cannot be used, what held before goes
 * on to hold. */
static int
reload(struct supervisor *s, char *error)
{
	struct gp_tls *tls = NULL;
	int r;

	gpd_notify_reloading();
	r = read_tls(s, true, &tls, error);
	if (r == 0 && (s->options->config || !tls))
		r = gpd_admission_reload(&s->admission, error);
	if (r == 0)
		gpd_tls_use(tls);
	else
		gp_tls_put(tls);
	if (r == 0)
		gpd_info("%s is in force",
			 s->options->config ? s->options->config : "the certificate");
	else
		gpd_error("nothing is reloaded: %s", error);
	gpd_notify("READY=1");
	return r;
}

static void
read_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	char error[GPD_CONFIG_ERROR_MAX];

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap_workers(s);
		else if (info.ssi_signo == SIGHUP)
			(void)reload(s, error);
		else
			stop(s);
	}
}

static void
kill_workers(struct supervisor *s)
{
	while (s->children) {
		struct gpd_child *child = s->children;

		s->children = child->next;
		(void)kill(child->pid, SIGKILL);
		(void)waitpid(child->pid, NULL, 0);
		gpd_child_destroy(child);
	}
}

static int
timeout_of(const struct supervisor *s, int64_t now)
{
	int64_t until = gpd_admission_deadline(&s->admission);
	int64_t admin = gpd_admin_deadline(&s->manager.admin);

	int64_t watchdog = gpd_notify_deadline();

	if (admin < until)
		until = admin;
	if (watchdog < until)
		until = watchdog;
	if (s->stopping && s->stop_ms < until)
		until = s->stop_ms;
	if (!s->worker && !s->stopping && s->start_worker_ms < until)
		until = s->start_worker_ms;
	if (is_busy(s->worker) && s->worker->busy_ms + BUSY_MS < until)
		until = s->worker->busy_ms + BUSY_MS;
	if (s->listen.accept_ms > now && s->listen.accept_ms < until)
		until = s->listen.accept_ms;
	for (const struct gpd_child *child = s->children; child; child = child->next) {
		if (child->deadline_ms < until)
			until = child->deadline_ms;
	}
	if (until == INT64_MAX)
		return -1;
	if (until <= now)
		return 0;
	return until - now > 60000 ? 60000 : (int)(until - now);
}

/* What there is to poll for; NULL: no memory. */
static struct pollfd *
make_room(struct supervisor *s)
{
	size_t wanted = FIXED_FDS + GPD_LISTEN_MAX + GPD_ADMIN_POLL_MAX;
	struct pollfd *fds;

	for (const struct gpd_child *child = s->children; child; child = child->next)
		wanted++;
	if (wanted <= s->fds_room)
		return s->fds;
	fds = realloc(s->fds, 2 * wanted * sizeof(*fds));
	if (!fds)
		return NULL;
	s->fds = fds;
	s->fds_room = 2 * wanted;
	return fds;
}

static int
poll_workers(struct supervisor *s, struct pollfd *fds)
{
	int count = 0;

	for (struct gpd_child *child = s->children; child; child = child->next) {
		short events = POLLIN;

		child->polled = -1;
		if (child->channel_closed)
			continue;
		if (gpd_channel_has_queued(&child->channel))
			events |= POLLOUT;
		child->polled = count;
		fds[count++] = (struct pollfd){ .fd = child->channel.fd, .events = events };
	}
	return count;
}

static void
serve_workers(struct supervisor *s, const struct pollfd *fds)
{
	for (struct gpd_child *child = s->children; child; child = child->next) {
		short events = child->polled < 0 ? 0 : fds[child->polled].revents;

		child->polled = -1;
		if (events & POLLOUT && gpd_channel_flush(&child->channel))
			child->channel_closed = true;
		if (events & (POLLIN | POLLHUP | POLLERR))
			read_channel(s, child);
	}
}

/* Waits for whatever comes first and acts on it. */
static void
turn(struct supervisor *s)
{
	struct pollfd *fds = make_room(s);
	int64_t now = now_ms();
	int listening, workers, first_admin, admins, ready;

	if (!fds) {
		gpd_error("out of memory");
		s->status = 1;
		return;
	}
	fds[0] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = gpd_peer_events_fd(), .events = POLLIN };
	listening = gpd_listen_poll(&s->listen, now, fds + FIXED_FDS);
	workers = poll_workers(s, fds + FIXED_FDS + listening);
	first_admin = FIXED_FDS + listening + workers;
	admins = gpd_admin_poll(&s->manager.admin, fds + first_admin);
	gpd_manager_unlock(&s->manager);
	ready = poll(fds, (nfds_t)(first_admin + admins), timeout_of(s, now));
	gpd_manager_lock(&s->manager);
	if (ready < 0)
		return;

	/* Workers may start while their messages are read, but none goes before the signals. */
	serve_workers(s, fds + FIXED_FDS + listening);
	gpd_listen_accept(&s->listen, fds + FIXED_FDS, listening, &s->admission, now_ms());
	if (fds[1].revents)
		gpd_admission_take_events(&s->admission, now_ms());
	if (fds[0].revents)
		read_signals(s);
	gpd_admission_check_deadlines(&s->admission, now_ms());
	check_workers(s, now_ms());
	gpd_notify_alive(now_ms());
	gpd_admin_serve(&s->manager.admin, fds + first_admin, now_ms());
}

/* What the admin socket asks of the supervisor. */

static void
stop_for_admin(void *arg)
{
	struct supervisor *s = arg;

	if (!s->stopping)
		stop(s);
}

static bool
retire_for_admin(void *arg, pid_t worker)
{
	struct supervisor *s = arg;

	for (struct gpd_child *child = s->children; child; child = child->next) {
		if (child->pid != worker || child->state != GPD_CHILD_READY)
			continue;
		tell_to_retire(s, child);
		return true;
	}
	return false;
}

static int
reload_for_admin(void *arg, char *error)
{
	return reload(arg, error);
}

static const struct gpd_manager_hooks manager_hooks = {
	.stop = stop_for_admin,
	.retire = retire_for_admin,
	.reload = reload_for_admin,
};

/* Once everything is open; what has to be read again later is tried out at once. */
static int
drop_privileges(struct supervisor *s)
{
	char error[GPD_CONFIG_ERROR_MAX];
	uid_t before = geteuid();
	struct gp_tls *tls;

	if (gpd_privilege_drop(s->options->user, error, sizeof(error))) {
		fprintf(stderr, "gpupoold: %s\n", error);
		return -1;
	}
	if (geteuid() == before)
		return 0;
	gpd_privilege_check_file(s->options->config);
	gpd_privilege_check_file(s->admission.gate.store.path);
	if (read_tls(s, false, &tls, error))
		gpd_warning("the certificate can not be read again, and a reload will fail: %s",
			    error);
	else
		gp_tls_put(tls);
	return 0;
}

static int
set_up(struct supervisor *s)
{
	char error[GPD_CONFIG_ERROR_MAX];
	struct rlimit files;
	struct gp_tls *tls;
	sigset_t signals;

	/* Every session needs a few descriptors; the default is for programs that use select(). */
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
	if (s->signal_fd < 0 || gpd_peer_setup()) {
		fprintf(stderr, "gpupoold: cannot start: %s\n", strerror(errno));
		return -1;
	}
	if (read_tls(s, false, &tls, error)) {
		fprintf(stderr, "gpupoold: %s\n", error);
		return -1;
	}
	gpd_tls_use(tls);
	if (gpd_listen_open(&s->listen, s->options) || gpd_manager_open(&s->manager, s->options))
		return -1;
	return drop_privileges(s);
}

static int
open_gate(struct supervisor *s)
{
	char error[GPD_TOKEN_ERROR_MAX];

	if (gpd_gate_open(&s->admission.gate, s->quota.tenants.config, s->options->tokens,
			  s->options->insecure, error, sizeof(error)) == 0)
		return 0;
	fprintf(stderr, "gpupoold: %s\n", error);
	return -1;
}

int
gpd_supervisor_run(const struct gpd_options *options)
{
	struct supervisor s = { .options = options, .status = -1, .signal_fd = -1 };

	char error[GPD_CONFIG_ERROR_MAX];

	if (gpd_quota_init(&s.quota, options->config, error)) {
		fprintf(stderr, "gpupoold: %s\n", error);
		return 1;
	}
	if (gpd_manager_init(&s.manager, &s.admission, &s.quota, &s.children, &manager_hooks, &s)) {
		fprintf(stderr, "gpupoold: out of memory\n");
		return 1;
	}
	gpd_admission_init(&s.admission, &s.quota, options->sessions_max, options->lanes_max);
	s.admission.start_alone = start_alone;
	s.admission.arg = &s;
	s.admission.roster = &s.manager.roster;
	if (open_gate(&s) || set_up(&s)) {
		gpd_listen_close(&s.listen);
		gpd_manager_fini(&s.manager);
		gpd_gate_close(&s.admission.gate);
		gpd_tls_use(NULL);
		gpd_quota_fini(&s.quota);
		return 1;
	}
	while (s.status < 0) {
		turn(&s);
		if (s.stopping && (!s.children || s.stop_ms <= now_ms()))
			s.status = 0;
	}
	kill_workers(&s);
	gpd_listen_close(&s.listen);
	gpd_manager_fini(&s.manager);
	gpd_admission_fini(&s.admission);
	gpd_gate_close(&s.admission.gate);
	gpd_tls_use(NULL);
	gpd_quota_fini(&s.quota);
	free(s.fds);
	close(s.signal_fd);
	return s.status;
}
