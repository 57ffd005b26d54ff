/* SPDX-License-Identifier: Apache-2.0 */
#include "client/trace/tracer.h"

#include "base/clock.h"
#include "base/environment.h"
#include "base/file_limit.h"
#include "base/lock.h"
#include "base/thread.h"
#include "client/base/log.h"
#include "client/base/trace.h"
#include "client/guard/guard.h"
#include "client/session/session.h"
#include "client/trace/gpu_trace.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Interval at which the threads' buffers are flushed; REQUEST_NS is the interval at which the
 * daemons are queried. */
#define POLL_NS 10000000
/* While one interval yields more text than this, the interval is SHORT_POLL_NS. */
#define LARGE_TEXT ((size_t)1 << 18)
#define SHORT_POLL_NS 200000
#define REQUEST_NS 50000000
/* Timeout for replies of the daemons. */
#define REPLY_MS 2000
/* Larger than any process ID. */
#define DAEMON_PID 10000000

static struct {
	atomic_bool started;
	bool forked; /* the file is the parent's, whether or not the parent already writes one */
	int fd;
	uint64_t lost, poll_ns;
	struct gpc_trace_text text; /* owned by the writer thread until it has ended */
	struct gpc_gpu_trace *gpus[GPC_SESSIONS_MAX];
} tracer = { .fd = -1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
GP_COND_CONSTRUCTOR(changed);
static bool wanted GP_GUARDED_BY(lock), stop GP_GUARDED_BY(lock), ended GP_GUARDED_BY(lock);

/* Replaces %p by the process ID. */
static void
path_expand(char *path, size_t size, const char *pattern)
{
	size_t used = 0;

	while (*pattern && used + 1 < size) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			used += (size_t)snprintf(path + used, size - used, "%d", (int)getpid());
			pattern += 2;
		} else {
			path[used++] = *pattern++;
		}
	}
	path[used < size ? used : size - 1] = '\0';
}

/* Returns the descriptor or a negative errno: -EWOULDBLOCK if another process holds the file's
 * lock, as it does while it writes; -ENXIO for a pipe without a reader, instead of waiting for
 * one. */
static int
trace_open_path(const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
	int fd = gp_fd_move_above_stdio(open(path, flags | O_NONBLOCK, 0644));

	if (fd < 0)
		return -errno;
	(void)fcntl(fd, F_SETFL, flags);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		(void)close(fd);
		return -EWOULDBLOCK;
	}
	/* Fails for pipes and other files that cannot be truncated. */
	(void)!ftruncate(fd, 0);
	gp_fd_guard_mark(fd);
	return fd;
}

static int
trace_open_file(void)
{
	const char *set = gp_environment_get("GPUPOOL_TRACE"), *pattern = set ? set : "";
	char path[PATH_MAX], other[PATH_MAX + 16];
	int fd;

	path_expand(path, sizeof(path), pattern);
	fd = tracer.forked && !strstr(pattern, "%p") ? -EWOULDBLOCK : trace_open_path(path);
	if (fd == -EWOULDBLOCK) {
		(void)snprintf(other, sizeof(other), "%s.%d", path, (int)getpid());
		fd = trace_open_path(other);
	}
	if (fd < 0)
		gpc_log_always("GPUPOOL_TRACE=%s: %s; no trace is written", path,
			       fd == -ENXIO ? "no process reads this pipe" : strerror(-fd));
	return fd;
}

/* Stops recording. */
static void
trace_abort(const char *why)
{
	atomic_store(&gpc_trace_on, false);
	gpc_log_always("GPUPOOL_TRACE: %s; the trace ends here", why);
}

/* Discards the text, whether or not it could be written. */
static void
trace_write_text(void)
{
	struct gp_sigxfsz limit;
	size_t done = 0;

	if (tracer.text.lost)
		trace_abort("no memory");
	while (gpc_trace_is_on() && done < tracer.text.size) {
		ssize_t n = -1;

		errno = EBADF;
		gpc_guard_block();
		gp_sigxfsz_block(&limit);
		if (gp_fd_guard_is_marked(tracer.fd))
			n = write(tracer.fd, tracer.text.data + done, tracer.text.size - done);
		gp_sigxfsz_restore(&limit);
		if (n < 0 && errno != EINTR)
			trace_abort(strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	tracer.text.size = 0;
}

static void
calls_flush(void)
{
	const struct gpc_trace_track track = { tracer.text.pid, 0 };
	uint64_t lost = gpc_trace_flush(&tracer.text);

	if (lost != tracer.lost)
		gpc_trace_text_count(&tracer.text, track, gp_now_ns(), "not recorded", "events",
				     lost);
	tracer.lost = lost;
	tracer.poll_ns = tracer.text.size > LARGE_TEXT ? SHORT_POLL_NS : POLL_NS;
	trace_write_text();
}

/* Polls all daemons; `want` starts a new query of each. Returns whether all have sent their
 * data. */
static bool
gpus_poll(bool want)
{
	bool all = true;

	for (int i = 0; i < gpc_session_count(); i++) {
		struct gpc_gpu_trace **gpu = &tracer.gpus[i];

		if (!*gpu)
			*gpu = calloc(1, sizeof(**gpu));
		if (!*gpu)
			continue;
		(*gpu)->pid = DAEMON_PID + i;
		if (want)
			gpc_gpu_trace_request(*gpu);
		all = gpc_gpu_trace_poll(&tracer.text, *gpu, gpc_session_at(i)) && all;
	}
	trace_write_text();
	return all;
}

/* Waits for the next interval or a change of the flags, and returns the flags. */
static void
flags_wait(bool *wanted_p, bool *stop_p)
{
	(void)pthread_mutex_lock(&lock);
	if (stop == *stop_p && wanted == *wanted_p)
		(void)gp_cond_wait_until(&changed, &lock, gp_now_ns() + tracer.poll_ns);
	*stop_p = stop;
	*wanted_p = wanted;
	(void)pthread_mutex_unlock(&lock);
}

static void
flag_set(bool *flag, bool value)
{
	(void)pthread_mutex_lock(&lock);
	*flag = value;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

/* Waits until the flag has this value. Returns false on timeout. */
static bool
flag_await(const bool *flag, bool value)
{
	uint64_t deadline = gp_deadline_ns(REPLY_MS);
	bool done;

	(void)pthread_mutex_lock(&lock);
	while (*flag != value && gp_cond_wait_until(&changed, &lock, deadline))
		;
	done = *flag == value;
	(void)pthread_mutex_unlock(&lock);
	return done;
}

static void *
tracer_run(void *arg)
{
	bool requested = false, stopped = false, all = true;
	uint64_t due = 0;

	while (!stopped || !all) {
		bool requested_before = requested, stopped_before = stopped;

		flags_wait(&requested, &stopped);
		calls_flush();
		all = gpus_poll(gp_now_ns() >= due || requested > requested_before ||
				stopped > stopped_before);
		if (gp_now_ns() >= due)
			due = gp_now_ns() + REQUEST_NS;
		if (requested && all) {
			flag_set(&wanted, false);
			requested = false;
		}
		/* Another thread waits for the replies. */
		if (!all && (requested || stopped))
			tracer.poll_ns = SHORT_POLL_NS;
	}
	flag_set(&ended, true);
	return arg;
}

void
gpc_tracer_start(void)
{
	char name[256];
	int r;

	if (!gpc_trace_is_on() || tracer.started)
		return;
	tracer.started = true;
	tracer.fd = trace_open_file();
	if (tracer.fd < 0) {
		atomic_store(&gpc_trace_on, false);
		return;
	}
	tracer.text =
		(struct gpc_trace_text){ .begun_ns = gpc_trace_start_ns(), .pid = (int)getpid() };
	(void)snprintf(name, sizeof(name), "%s %d", program_invocation_short_name, tracer.text.pid);
	gpc_trace_text_name(&tracer.text, (struct gpc_trace_track){ tracer.text.pid, 0 },
			    "process_name", name);
	/* Replaces the comma before the first event. */
	if (tracer.text.size)
		tracer.text.data[0] = '[';
	r = gp_thread_start("gpupool-trace", 0, tracer_run, NULL);
	if (r)
		trace_abort(strerror(-r));
}

static bool
tracer_is_active(void)
{
	return gpc_trace_is_on() && tracer.started;
}

void
gpc_tracer_await_daemons(void)
{
	if (!tracer_is_active())
		return;
	flag_set(&wanted, true);
	(void)flag_await(&wanted, false);
}

void
gpc_tracer_stop(void)
{
	if (!tracer_is_active())
		return;
	flag_set(&stop, true);
	(void)flag_await(&ended, true);
}

void
gpc_tracer_close(void)
{
	if (!tracer_is_active() || !flag_await(&ended, true))
		return;
	calls_flush();
	if (gpc_trace_is_on() && gp_fd_guard_is_marked(tracer.fd))
		(void)!write(tracer.fd, "\n]\n", 3);
	atomic_store(&gpc_trace_on, false);
	gp_fd_guard_close(tracer.fd);
	gpc_trace_text_fini(&tracer.text);
	for (int i = 0; i < GPC_SESSIONS_MAX; i++) {
		if (tracer.gpus[i])
			gpc_gpu_trace_fini(tracer.gpus[i]);
		free(tracer.gpus[i]);
	}
}

void
gpc_tracer_after_fork(void)
{
	if (!gpc_trace_is_on())
		return;
	gpc_trace_after_fork();
	(void)pthread_mutex_init(&lock, NULL);
	gp_cond_init(&changed);
	gp_fd_guard_close(tracer.fd);
	/* The writer thread does not exist in the child; its data is abandoned. */
	tracer.started = false;
	tracer.fd = -1;
	tracer.lost = 0;
	memset(tracer.gpus, 0, sizeof(tracer.gpus));
	tracer.forked = true;
	(void)pthread_mutex_lock(&lock);
	wanted = stop = ended = false;
	(void)pthread_mutex_unlock(&lock);
}
