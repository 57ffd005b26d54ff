/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream/print.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/base/log.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#define PIPE_SIZE (1 << 20)
/* Maximum output of a session's kernels between two of its waits; the rest is lost. */
#define TEXT_MAX ((size_t)16 << 20)

#define SECOND_NS 1000000000ull
/* A waiting session polls often at first: an owner that waits for its kernels leaves only short
 * gaps. */
#define POLL_NS 50000
#define POLL_SLOW_NS 500000
#define POLL_FAST_FOR_NS 200000000ull

uint64_t gpd_print_limit_ns = 30 * SECOND_NS;

/* Printing work of one stream: done when the event of its last launch is. */
struct printing {
	struct printing *next;
	CUstream stream;
	CUevent event;
	int device;
	uint32_t tenant; /* of the session, which a straggler may outlive */
	bool written;    /* the driver has written all of its output */
};

struct gpd_print {
	pthread_mutex_t send_lock; /* keeps sent output in order; taken before the locks below */
	struct printing *printing;
	unsigned int launching;            /* launches in progress, without an event yet */
	const struct gpd_session *session; /* outlives this */
	bool loss_reported;                /* possible loss of output was reported */
	char complaint[160];               /* message about it, to be sent */
	char *text;                        /* not yet sent */
	size_t size;
	size_t capacity; /* charged to the ledger */
};

/* A session whose launch waits to become the owner. */
struct waiter {
	struct waiter *next;
	uint32_t tenant;
	uint64_t since; /* time of its arrival */
};

static struct {
	pthread_mutex_t lock; /* taken before the reader's lock */
	struct gpd_print *owner;
	struct waiter *waiters;      /* in the order of arrival */
	struct printing *stragglers; /* work of former owners that was not waited for */
	CUstream streams[GPD_DEVICES_MAX];
	bool started;
} print = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Never held while the driver writes, because the driver may have to wait for room in the pipe. */
static struct {
	pthread_mutex_t lock; /* also protects the text of sessions */
	int fd;
	struct gpd_print *receiver; /* session that gets the output; NULL: it is dropped */
} reader = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void
text_append(struct gpd_print *to, const char *text, size_t size)
{
	if (!to || to->size + size > TEXT_MAX)
		return;
	if (to->size + size > to->capacity) {
		size_t capacity = to->capacity ? to->capacity * 2 : 4096;
		const struct gpd_account *account = &to->session->account;
		char *grown;

		while (capacity < to->size + size)
			capacity *= 2;
		if (!gpd_ledger_charge_host(account->ledger, account->entry,
					    capacity - to->capacity))
			return;
		grown = realloc(to->text, capacity);
		if (!grown) {
			gpd_ledger_uncharge_host(account->ledger, account->entry,
						 capacity - to->capacity);
			return;
		}
		to->text = grown;
		to->capacity = capacity;
	}
	memcpy(to->text + to->size, text, size);
	to->size += size;
}

/* Reads everything that is in the pipe now. */
static void
pipe_drain(void)
{
	char text[4096];
	ssize_t n;

	pthread_mutex_lock(&reader.lock);
	while ((n = read(reader.fd, text, sizeof(text))) > 0 || (n < 0 && errno == EINTR))
		text_append(reader.receiver, text, n > 0 ? (size_t)n : 0);
	pthread_mutex_unlock(&reader.lock);
}

/* From now on output goes to the owner, if it cannot be from another session. */
static void
receiver_update(void)
{
	pthread_mutex_lock(&reader.lock);
	reader.receiver = print.stragglers ? NULL : print.owner;
	pthread_mutex_unlock(&reader.lock);
}

/* Needed because a full pipe would block the driver in the middle of a flush. */
static void *
pipe_reader_run(void *unused)
{
	struct pollfd pollfd = { .fd = reader.fd, .events = POLLIN };

	while (poll(&pollfd, 1, -1) >= 0 || errno == EINTR)
		pipe_drain();
	return unused;
}

int
gpd_print_start(void)
{
	int fds[2];
	int r;

	if (print.started)
		return 0;
	fflush(stdout);
	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	(void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_SIZE);
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) || dup2(fds[1], STDOUT_FILENO) < 0) {
		r = -errno;
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	close(fds[1]);
	reader.fd = fds[0];
	print.started = true;
	return gp_thread_start("print", 0, pipe_reader_run, NULL);
}

static bool
printing_is_unfinished(const struct printing *printing)
{
	return gpd_driver.cuEventQuery(printing->event) == CUDA_ERROR_NOT_READY;
}

static bool
any_unfinished(const struct printing *list)
{
	while (list && !printing_is_unfinished(list))
		list = list->next;
	return list != NULL;
}

/* Whether the session may have printing kernels in flight. */
static bool
is_printing(const struct gpd_print *session)
{
	return session->launching > 0 || any_unfinished(session->printing);
}

static void
printing_free(struct printing *printing)
{
	gpd_driver.cuEventDestroy_v2(printing->event);
	free(printing);
}

static CUstream
private_stream(int device)
{
	if (!print.streams[device])
		(void)gpd_driver.cuStreamCreateWithPriority(&print.streams[device],
							    CU_STREAM_NON_BLOCKING, 0);
	return print.streams[device];
}

/*
 * Makes the driver write its output, which it does when it is called to wait for a stream. A
 * private stream is used, ordered after the kernels that are done.
 */
static void
printing_write(struct printing *printing)
{
	CUstream stream;

	if (gpd_device_enter(printing->device) != CUDA_SUCCESS)
		return;
	stream = private_stream(printing->device);
	if (!stream)
		return;
	printing->written =
		!printing_is_unfinished(printing) &&
		gpd_driver.cuStreamWaitEvent(stream, printing->event, 0) == CUDA_SUCCESS;
	(void)gpd_driver.cuStreamSynchronize(stream);
}

/* Drops the work whose output has been written. */
static void
printing_write_all(struct printing **list)
{
	struct printing *printing, *next;

	LL_FOREACH_SAFE(*list, printing, next)
	{
		printing_write(printing);
		if (printing->written) {
			LL_DELETE(*list, printing);
			printing_free(printing);
		}
	}
}

static void
output_collect(struct gpd_print *session) GP_LOCKED(print.lock)
{
	if (!session->printing && !print.stragglers)
		return;
	printing_write_all(&session->printing);
	if (print.stragglers && !any_unfinished(print.stragglers))
		printing_write_all(&print.stragglers);
	fflush(stdout);
	pipe_drain();
	receiver_update();
}

static bool
is_ending(const struct gpd_session *session)
{
	return atomic_load(&session->closing) || atomic_load(&session->sticky) != CUDA_SUCCESS;
}

/* Sleeps without the lock; the owner may have changed when it returns. */
static void
owner_poll_pause(uint64_t since) GP_LOCKED(print.lock)
{
	bool often = gp_now_ns() - since < POLL_FAST_FOR_NS;

	pthread_mutex_unlock(&print.lock);
	gp_sleep_ns(often ? POLL_NS : POLL_SLOW_NS);
	pthread_mutex_lock(&print.lock);
}

/* Whether kernels of the tenant print longer than others have waited for them. */
static bool
tenant_has_stragglers(uint32_t tenant) GP_LOCKED(print.lock)
{
	const struct printing *printing = print.stragglers;

	while (printing && (printing->tenant != tenant || !printing_is_unfinished(printing)))
		printing = printing->next;
	return printing != NULL;
}

/* Returns the waiter that is next: the first to have arrived, of those whose tenants have no
 * stragglers if there are such. */
static const struct waiter *
waiter_get_next(void) GP_LOCKED(print.lock)
{
	const struct waiter *waiter = print.waiters;

	while (print.stragglers && waiter && tenant_has_stragglers(waiter->tenant))
		waiter = waiter->next;
	return waiter ? waiter : print.waiters;
}

/* Returns true if it is the waiter's turn and the owner has no printing kernels left, or the waiter
 * has waited for its whole time; false if the session is ending. */
static bool
queue_wait(struct gpd_session *session, const struct waiter *waiter) GP_LOCKED(print.lock)
{
	while (!is_ending(session)) {
		if (gp_now_ns() - waiter->since >= gpd_print_limit_ns)
			return true;
		if (waiter_get_next() == waiter &&
		    (!print.owner || print.owner == session->print || !is_printing(print.owner)))
			return true;
		owner_poll_pause(waiter->since);
	}
	return false;
}

/* Waits after the sessions that already wait, so that an owner that always has printing kernels
 * lets others take over. */
static bool
owner_wait(struct gpd_session *session) GP_LOCKED(print.lock)
{
	struct waiter waiter = { .tenant = session->account.entry->tenant, .since = gp_now_ns() };
	struct waiter *me = &waiter;
	bool mine;

	LL_APPEND(print.waiters, me);
	mine = queue_wait(session, me);
	LL_DELETE(print.waiters, me);
	return mine;
}

/* The lock must be held. Reports once per session. */
static void
loss_report(struct gpd_print *to, const char *what)
{
	if (!to->loss_reported)
		(void)snprintf(to->complaint, sizeof(to->complaint),
			       "gpupool: output of device printf may be lost: another client's "
			       "kernel that prints %s\n",
			       what);
	to->loss_reported = true;
}

/* The owner's kernels continue; output until their end cannot be attributed to a session. */
static void
make_straggler(struct gpd_print *owner, const struct gpd_print *next) GP_LOCKED(print.lock)
{
	LL_CONCAT(print.stragglers, owner->printing);
	owner->printing = NULL;
	gpd_warning("session %llu (%s): its kernel that prints is running and session %llu (%s) "
		    "no longer waits, after %llu s: output until it ends is lost",
		    (unsigned long long)owner->session->id, owner->session->peer,
		    (unsigned long long)next->session->id, next->session->peer,
		    gpd_print_limit_ns / SECOND_NS);
	loss_report(owner, "has waited too long for this one's");
}

static void
owner_replace(struct gpd_print *session) GP_LOCKED(print.lock)
{
	struct gpd_print *owner = print.owner;

	if (owner) {
		output_collect(owner);
		if (any_unfinished(owner->printing))
			make_straggler(owner, session);
	}
	print.owner = session;
	output_collect(session);
	receiver_update();
	if (print.stragglers)
		loss_report(session, "is still running");
}

static struct gpd_print *
print_create(const struct gpd_session *session)
{
	struct gpd_print *created = calloc(1, sizeof(*created));

	if (!created)
		return NULL;
	pthread_mutex_init(&created->send_lock, NULL);
	created->session = session;
	return created;
}

CUresult
gpd_print_begin(struct gpd_session *session, const struct gpd_stream *stream)
{
	bool mine = true;
	CUresult result = gpd_device_enter(stream->device);

	if (!print.started || result != CUDA_SUCCESS)
		return result;
	if (!session->print)
		__atomic_store_n(&session->print, print_create(session), __ATOMIC_RELEASE);
	if (!session->print)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&print.lock);
	if (print.owner != session->print || print.waiters) {
		mine = owner_wait(session);
		if (mine && print.owner != session->print)
			owner_replace(session->print);
	}
	if (mine)
		session->print->launching++;
	pthread_mutex_unlock(&print.lock);
	/* The result is not reported: the session ends or its context is lost. */
	if (!mine)
		return CUDA_ERROR_NOT_PERMITTED;
	/* Becoming the owner may have changed the current device. */
	(void)gpd_device_enter(stream->device);
	return CUDA_SUCCESS;
}

static struct printing *
printing_get(struct gpd_print *session, struct gpd_stream *stream)
{
	struct printing *printing;

	LL_SEARCH_SCALAR(session->printing, printing, stream, stream->driver);
	if (printing)
		return printing;
	printing = calloc(1, sizeof(*printing));
	if (!printing)
		return NULL;
	if (gpd_driver.cuEventCreate(&printing->event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
		free(printing);
		return NULL;
	}
	printing->stream = stream->driver;
	printing->device = stream->device;
	printing->tenant = session->session->account.entry->tenant;
	LL_PREPEND(session->printing, printing);
	return printing;
}

void
gpd_print_end(struct gpd_session *session, struct gpd_stream *stream)
{
	struct printing *printing;

	if (!session->print)
		return;
	pthread_mutex_lock(&print.lock);
	session->print->launching--;
	printing = printing_get(session->print, stream);
	if (printing)
		(void)gpd_driver.cuEventRecord(printing->event, stream->driver);
	pthread_mutex_unlock(&print.lock);
}

void
gpd_print_flush(struct gpd_session *session)
{
	struct gpd_print *mine = __atomic_load_n(&session->print, __ATOMIC_ACQUIRE);
	char complaint[sizeof(mine->complaint)];
	char *text;
	size_t size, capacity;

	if (!mine)
		return;
	pthread_mutex_lock(&mine->send_lock);
	pthread_mutex_lock(&print.lock);
	if (print.owner == mine)
		output_collect(mine);
	memcpy(complaint, mine->complaint, sizeof(complaint));
	mine->complaint[0] = 0;
	pthread_mutex_unlock(&print.lock);
	pthread_mutex_lock(&reader.lock);
	text = mine->text;
	size = mine->size;
	capacity = mine->capacity;
	mine->text = NULL;
	mine->size = mine->capacity = 0;
	pthread_mutex_unlock(&reader.lock);
	if (complaint[0])
		(void)gpd_session_send_complaint(session, complaint);
	(void)gpd_session_send_print(session, text, size);
	free(text);
	gpd_ledger_uncharge_host(session->account.ledger, session->account.entry, capacity);
	pthread_mutex_unlock(&mine->send_lock);
}

void
gpd_print_destroy(struct gpd_session *session)
{
	struct gpd_print *mine = session->print;
	struct printing *printing;

	if (!mine)
		return;
	gpd_print_flush(session);
	session->print = NULL;
	pthread_mutex_lock(&print.lock);
	if (print.owner == mine)
		print.owner = NULL;
	receiver_update();
	while ((printing = mine->printing)) {
		LL_DELETE(mine->printing, printing);
		printing_free(printing);
	}
	pthread_mutex_unlock(&print.lock);
	pthread_mutex_destroy(&mine->send_lock);
	free(mine->text);
	gpd_ledger_uncharge_host(session->account.ledger, session->account.entry, mine->capacity);
	free(mine);
}
