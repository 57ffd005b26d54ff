/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping until a connection's device has something to say, and the descriptors for it, which in a
 * client are at the program's mercy. */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/own_fd.h"
#include "transport/rdma/rdma.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* Acknowledging completion events takes a lock of the library. */
#define ACK_EVERY 1000
/* Looks between two of the clock. */
#define SPIN_POLLS 16
/* Who cannot sleep any more, but still has to wait, looks so often. */
#define NAP_MS 2
#define EVENTS_MAX 3

static void
conn_notify(struct gp_rdma_conn *conn)
{
	conn->completions++;
	pthread_cond_broadcast(&conn->changed);
}

bool
gp_rdma_owns_fd(struct gp_rdma_conn *conn, int fd)
{
	/* A daemon closes nothing that it does not know. */
	if (conn->server || gp_fd_guard_is_marked(fd))
		return true;
	if (conn->lost)
		return false;
	conn->lost = true;
	/* The peer may have noticed it first, and have ended the connection. */
	if (!conn->down)
		(void)gp_conn_fail(&conn->stream.conn, -EBADF,
				   "the program has closed descriptors of the library");
	gp_rdma_set_down(conn, -EBADF, "");
	conn_notify(conn);
	return false;
}

/* The kernel's connection manager serves a process with the user only that opened it. */
static void
events_fail(struct gp_rdma_conn *conn, int r)
{
	if (gp_fd_wait(conn->events->fd, POLLIN, 0) <= 0)
		return;
	/* It stays readable, and nobody could sleep. */
	(void)epoll_ctl(conn->poll_fd, EPOLL_CTL_DEL, conn->events->fd, NULL);
	gp_rdma_set_down(conn, r,
			 r == -EACCES ? "the RDMA connection manager does not report events to a "
					"process that has changed its user"
				      : "the RDMA connection manager's events cannot be read");
	conn_notify(conn);
}

void
gp_rdma_poll_events(struct gp_rdma_conn *conn)
{
	struct rdma_cm_event *event;

	if (!gp_rdma_owns_fd(conn, conn->events->fd))
		return;
	while (gp_rdma_lib.rdma_get_cm_event(conn->events, &event) == 0) {
		enum rdma_cm_event_type type = event->event;

		(void)gp_rdma_lib.rdma_ack_cm_event(event);
		if (type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT)
			continue;
		/* What the peer sent is there before the news of its end. */
		gp_rdma_poll_cq(conn);
		gp_rdma_set_down(conn, -ECONNRESET,
				 type == RDMA_CM_EVENT_DEVICE_REMOVAL
					 ? "the RDMA device was removed"
					 : "the peer disconnected without notice");
		/* The kernel leaves the queue pair as it is: nothing that waits would fail. */
		gp_rdma_disconnect(conn);
		conn_notify(conn);
	}
	if (errno != EAGAIN && errno != EINTR)
		events_fail(conn, -errno);
}

static void
cq_event_consume(struct gp_rdma_conn *conn)
{
	struct ibv_cq *cq;
	void *context;

	if (!conn->armed || !gp_rdma_owns_fd(conn, conn->channel->fd) ||
	    gp_rdma_lib.ibv_get_cq_event(conn->channel, &cq, &context))
		return;
	conn->armed = false;
	if (++conn->unacked_events == ACK_EVERY) {
		gp_rdma_lib.ibv_ack_cq_events(conn->cq, conn->unacked_events);
		conn->unacked_events = 0;
	}
}

static void
cq_arm(struct gp_rdma_conn *conn)
{
	if (conn->armed || conn->lost)
		return;
	conn->armed = ibv_req_notify_cq(conn->cq, 0) == 0;
	if (!conn->armed)
		gp_rdma_set_down(conn, -EIO, "the RDMA device does not report completions");
}

/* Who polls outside finds out, whoever has taken the event that said so. */
static void
watch_notify(struct gp_rdma_conn *conn)
{
	bool there = gp_rdma_has_bytes(conn) || conn->ended || conn->down || conn->more ||
		     atomic_load(&conn->stream.stopped);
	uint64_t count = 1;

	if (!conn->watched || there == conn->is_notified || !gp_rdma_owns_fd(conn, conn->notify_fd))
		return;
	if (there)
		conn->is_notified = write(conn->notify_fd, &count, sizeof(count)) == sizeof(count);
	else
		conn->is_notified = read(conn->notify_fd, &count, sizeof(count)) != sizeof(count);
}

void
gp_rdma_wake(struct gp_rdma_conn *conn)
{
	uint64_t one = 1;

	if (!conn->woken && gp_rdma_owns_fd(conn, conn->wake_fd) &&
	    write(conn->wake_fd, &one, sizeof(one)) == sizeof(one))
		conn->woken = true;
	watch_notify(conn);
	pthread_cond_broadcast(&conn->changed);
}

void
gp_rdma_arm_watch(struct gp_rdma_conn *conn)
{
	gp_rdma_poll_events(conn);
	/* Who sleeps for it would sleep on. */
	if (!conn->asleep)
		cq_event_consume(conn);
	cq_arm(conn);
	/* What came before it was armed is announced by nobody. */
	gp_rdma_poll_cq(conn);
	if (gp_rdma_owns_fd(conn, conn->watch_fd))
		watch_notify(conn);
}

/* The clock is looked at here, not with each completion: round trips shall not wait for it. */
static void
heard_update(struct gp_rdma_conn *conn, int64_t now)
{
	if (conn->completions == conn->heard)
		return;
	conn->heard = conn->completions;
	conn->heard_ms = now;
}

static int
heartbeat_get_ms(const struct gp_rdma_conn *conn)
{
	unsigned int third_ms = conn->stream.conn.timeout_ms / 3;

	return third_ms && third_ms < GP_RDMA_HEARTBEAT_MS ? (int)third_ms : GP_RDMA_HEARTBEAT_MS;
}

/* A write of nothing: the peer's device answers it, whatever the peer does. */
void
gp_rdma_send_heartbeat(struct gp_rdma_conn *conn)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	int64_t now = gp_now_ms();

	heard_update(conn, now);
	if (conn->down || conn->ended || now - conn->heard_ms < heartbeat_get_ms(conn))
		return;
	conn->heard_ms = now;
	/* Short segments behind the last request that is told of may be done, and nobody would
	 * know: only one that is still to be told of finds out what this would. */
	if (conn->retired == conn->signalled)
		(void)gp_rdma_post_send(conn, &wr, true);
}

/* Only one thread waits for the device; it tells the others. */
static int
conn_wait_for_other(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock)
{
	uint64_t at_ns = deadline < 0 ? GP_FOREVER : (uint64_t)deadline * 1000000;

	return gp_cond_wait_until(&conn->changed, &conn->lock, at_ns) ? 0 : -EAGAIN;
}

static void
conn_sleep(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	pthread_mutex_unlock(&conn->lock);
	gp_sleep_ns(NAP_MS * UINT64_C(1000000));
	pthread_mutex_lock(&conn->lock);
}

/* Who finds something done has the lock all the time; others shall have it, too, however much a
 * peer sends that is done with at once. */
static int
conn_yield_lock(struct gp_rdma_conn *conn, int left) GP_LOCKED(conn->lock)
{
	if (conn->more) {
		pthread_mutex_unlock(&conn->lock);
		(void)sched_yield();
		pthread_mutex_lock(&conn->lock);
	}
	return left == 0 ? -EAGAIN : 0;
}

/* Without the lock.  Whether anything is there; *event_p: of the connection manager. */
static bool
device_sleep(const struct gp_rdma_conn *conn, int left, bool *event_p)
{
	int most = heartbeat_get_ms(conn);
	struct epoll_event found[EVENTS_MAX];
	int count;

	if (!conn->server && most > GP_RDMA_POLL_MS)
		most = GP_RDMA_POLL_MS;
	if (left < 0 || left > most)
		left = most;
	count = epoll_wait(conn->poll_fd, found, EVENTS_MAX, left);
	/* What cannot be said is looked for. */
	*event_p = count <= 0;
	for (int i = 0; i < count; i++)
		*event_p |= found[i].data.fd == conn->events->fd;
	return count > 0;
}

int
gp_rdma_wait(struct gp_rdma_conn *conn, int64_t deadline)
{
	uint64_t progress = conn->completions;
	int left = gp_remaining_ms(deadline);
	bool there, event;
	uint64_t count;

	gp_rdma_poll_cq(conn);
	if (conn->completions != progress)
		return conn_yield_lock(conn, left);
	if (left == 0)
		return -EAGAIN;
	if (conn->asleep)
		return conn_wait_for_other(conn, deadline);
	if (!gp_rdma_owns_fd(conn, conn->poll_fd)) {
		conn_sleep(conn);
		return 0;
	}
	cq_event_consume(conn);
	cq_arm(conn);
	gp_rdma_poll_cq(conn);
	watch_notify(conn);
	if (conn->completions != progress)
		return 0;
	heard_update(conn, gp_now_ms());
	conn->asleep = true;
	pthread_mutex_unlock(&conn->lock);
	there = device_sleep(conn, left, &event);
	pthread_mutex_lock(&conn->lock);
	conn->asleep = false;
	cq_event_consume(conn);
	gp_rdma_poll_cq(conn);
	if (event)
		gp_rdma_poll_events(conn);
	gp_rdma_send_heartbeat(conn);
	if (conn->woken && gp_rdma_owns_fd(conn, conn->wake_fd) &&
	    read(conn->wake_fd, &count, sizeof(count)) == sizeof(count))
		conn->woken = false;
	if (conn->watched)
		gp_rdma_arm_watch(conn);
	/* Another one may have to go on waiting for the device. */
	pthread_cond_broadcast(&conn->changed);
	return !there && gp_remaining_ms(deadline) == 0 ? -EAGAIN : 0;
}

int
gp_rdma_wait_spinning(struct gp_rdma_conn *conn, int64_t deadline)
{
	unsigned int spin_usec = atomic_load(&conn->spin_usec);
	uint64_t progress = conn->completions;
	uint64_t end = spin_usec ? gp_now_ns() + spin_usec * UINT64_C(1000) : 0;

	while (spin_usec && gp_now_ns() < end && !atomic_load(&conn->stream.stopped)) {
		for (int i = 0; i < SPIN_POLLS; i++) {
			gp_rdma_poll_cq(conn);
			if (conn->completions != progress)
				return 0;
			/* Others want to send. */
			pthread_mutex_unlock(&conn->lock);
			pthread_mutex_lock(&conn->lock);
		}
	}
	return gp_rdma_wait(conn, deadline);
}
