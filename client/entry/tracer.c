/* SPDX-License-Identifier: Apache-2.0 */
#include "client/entry/tracer.h"

#include "base/clock.h"
#include "base/environment.h"
#include "base/file_limit.h"
#include "base/lock.h"
#include "base/thread.h"
#include "client/base/log.h"
#include "client/base/trace.h"
#include "client/context/trace_gpu.h"
#include "client/guard/guard.h"
#include "client/wire/session.h"
#include "transport/descriptor.h"
#include "transport/own_fd.h"

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

/* From look to look at the threads' buffers, and from question to question to the daemons. */
#define LOOK_NS 10000000
/* While so much text comes of each look, they are as short as this. */
#define MUCH ((size_t)1 << 18)
#define SHORT_LOOK_NS 200000
#define ASK_NS 50000000
/* No answer is waited for longer. */
#define ANSWER_MS 2000
/* Beyond all process IDs. */
#define DAEMON_PID 10000000

static struct {
	atomic_bool started;
	bool forked; /* the file is the parent's, whether that writes one yet or not */
	int fd;
	uint64_t lost, look_ns;
	struct gpc_trace_text text; /* the thread's until it has ended */
	struct gpc_trace_gpu *gpus[GPC_SESSIONS_MAX];
} tracer = { .fd = -1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
GP_COND_AT_START(changed);
static bool wanted GP_GUARDED_BY(lock), stop GP_GUARDED_BY(lock), ended GP_GUARDED_BY(lock);

/* %p becomes the process's ID. */
static void
expand(char *path, size_t size, const char *pattern)
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

/* Another process writes it as long as it has the lock: then -EWOULDBLOCK.  A pipe that nobody
 * reads is not waited for: -ENXIO. */
static int
open_path(const char *path)
{
	const int flags = O_WRONLY | O_CREAT | O_CLOEXEC;
	int fd = gp_fd_away(open(path, flags | O_NONBLOCK, 0644));

	if (fd < 0)
		return -errno;
	(void)fcntl(fd, F_SETFL, flags);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		(void)close(fd);
		return -EWOULDBLOCK;
	}
	/* What is no file of bytes, a pipe for instance, cannot be cut. */
	(void)!ftruncate(fd, 0);
	gp_own_fd_mark(fd);
	return fd;
}

static int
open_file(void)
{
	const char *set = gp_environment_get("GPUPOOL_TRACE"), *pattern = set ? set : "";
	char path[PATH_MAX], other[PATH_MAX + 16];
	int fd;

	expand(path, sizeof(path), pattern);
	fd = tracer.forked && !strstr(pattern, "%p") ? -EWOULDBLOCK : open_path(path);
	if (fd == -EWOULDBLOCK) {
		(void)snprintf(other, sizeof(other), "%s.%d", path, (int)getpid());
		fd = open_path(other);
	}
	if (fd < 0)
		gpc_log_always("GPUPOOL_TRACE=%s: %s; no trace is written", path,
			       fd == -ENXIO ? "nobody reads this pipe" : strerror(-fd));
	return fd;
}

/* Nothing more is recorded. */
static void
give_up(const char *why)
{
	atomic_store(&gpc_trace_on, false);
	gpc_log_always("GPUPOOL_TRACE: %s; the trace ends here", why);
}

/* The text goes, written or not. */
static void
write_text(void)
{
	struct gp_file_limit limit;
	size_t done = 0;

	if (tracer.text.lost)
		give_up("no memory");
	while (gpc_trace_is_on() && done < tracer.text.size) {
		ssize_t n = -1;

		errno = EBADF;
		gpc_guard_block();
		gp_file_limit_begin(&limit);
		if (gp_own_fd_is(tracer.fd))
			n = write(tracer.fd, tracer.text.data + done, tracer.text.size - done);
		gp_file_limit_end(&limit);
		if (n < 0 && errno != EINTR)
			give_up(strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	tracer.text.size = 0;
}

static void
take_calls(void)
{
	const struct gpc_trace_track track = { tracer.text.pid, 0 };
	uint64_t lost = gpc_trace_take(&tracer.text);

	if (lost != tracer.lost)
		gpc_trace_text_count(&tracer.text, track, gp_now_ns(), "not recorded", "events",
				     lost);
	tracer.lost = lost;
	tracer.look_ns = tracer.text.size > MUCH ? SHORT_LOOK_NS : LOOK_NS;
	write_text();
}

/* want: asks all again.  Whether all have told what they had to. */
static bool
take_gpus(bool want)
{
	bool all = true;

	for (int i = 0; i < gpc_session_count(); i++) {
		struct gpc_trace_gpu **gpu = &tracer.gpus[i];

		if (!*gpu)
			*gpu = calloc(1, sizeof(**gpu));
		if (!*gpu)
			continue;
		(*gpu)->pid = DAEMON_PID + i;
		if (want)
			gpc_trace_gpu_want(*gpu);
		all = gpc_trace_gpu_step(&tracer.text, *gpu, gpc_session_at(i)) && all;
	}
	write_text();
	return all;
}

/* Some time later, or when somebody has a wish: what is wished. */
static void
look(bool *wanted_p, bool *stop_p)
{
	(void)pthread_mutex_lock(&lock);
	if (stop == *stop_p && wanted == *wanted_p)
		(void)gp_cond_wait_until(&changed, &lock, gp_now_ns() + tracer.look_ns);
	*stop_p = stop;
	*wanted_p = wanted;
	(void)pthread_mutex_unlock(&lock);
}

static void
tell(bool *flag, bool value)
{
	(void)pthread_mutex_lock(&lock);
	*flag = value;
	(void)pthread_cond_broadcast(&changed);
	(void)pthread_mutex_unlock(&lock);
}

/* Whether the flag has become this before it is too late. */
static bool
await(const bool *flag, bool value)
{
	uint64_t deadline = gp_deadline_ns(ANSWER_MS);
	bool done;

	(void)pthread_mutex_lock(&lock);
	while (*flag != value && gp_cond_wait_until(&changed, &lock, deadline))
		;
	done = *flag == value;
	(void)pthread_mutex_unlock(&lock);
	return done;
}

static void *
trace(void *arg)
{
	bool asked = false, stopped = false, all = true;
	uint64_t due = 0;

	while (!stopped || !all) {
		bool asked_before = asked, stopped_before = stopped;

		look(&asked, &stopped);
		take_calls();
		all = take_gpus(gp_now_ns() >= due || asked > asked_before ||
				stopped > stopped_before);
		if (gp_now_ns() >= due)
			due = gp_now_ns() + ASK_NS;
		if (asked && all) {
			tell(&wanted, false);
			asked = false;
		}
		/* Somebody waits for the answers. */
		if (!all && (asked || stopped))
			tracer.look_ns = SHORT_LOOK_NS;
	}
	tell(&ended, true);
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
	tracer.fd = open_file();
	if (tracer.fd < 0) {
		atomic_store(&gpc_trace_on, false);
		return;
	}
	tracer.text =
		(struct gpc_trace_text){ .begun_ns = gpc_trace_begun(), .pid = (int)getpid() };
	(void)snprintf(name, sizeof(name), "%s %d", program_invocation_short_name, tracer.text.pid);
	gpc_trace_text_name(&tracer.text, (struct gpc_trace_track){ tracer.text.pid, 0 },
			    "process_name", name);
	/* In place of the first event's comma. */
	if (tracer.text.size)
		tracer.text.data[0] = '[';
	r = gp_thread_start("gpupool-trace", 0, trace, NULL);
	if (r)
		give_up(strerror(-r));
}

static bool
is_at_work(void)
{
	return gpc_trace_is_on() && tracer.started;
}

void
gpc_tracer_follow(void)
{
	if (!is_at_work())
		return;
	tell(&wanted, true);
	(void)await(&wanted, false);
}

void
gpc_tracer_finish(void)
{
	if (!is_at_work())
		return;
	tell(&stop, true);
	(void)await(&ended, true);
}

void
gpc_tracer_end(void)
{
	if (!is_at_work() || !await(&ended, true))
		return;
	take_calls();
	if (gpc_trace_is_on() && gp_own_fd_is(tracer.fd))
		(void)!write(tracer.fd, "\n]\n", 3);
	atomic_store(&gpc_trace_on, false);
	gp_own_fd_close(tracer.fd);
	gpc_trace_text_fini(&tracer.text);
	for (int i = 0; i < GPC_SESSIONS_MAX; i++) {
		if (tracer.gpus[i])
			gpc_trace_gpu_fini(tracer.gpus[i]);
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
	gp_own_fd_close(tracer.fd);
	/* What the thread had belongs to nobody here. */
	tracer.started = false;
	tracer.fd = -1;
	tracer.lost = 0;
	memset(tracer.gpus, 0, sizeof(tracer.gpus));
	tracer.forked = true;
	(void)pthread_mutex_lock(&lock);
	wanted = stop = ended = false;
	(void)pthread_mutex_unlock(&lock);
}
