/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a connection's device, and checks of its descriptors, which in a client the program
 * may close. */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/private_fd.h"
#include "transport/rdma/rdma.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/* Acknowledging completion events needs a lock of the library, so they are acknowledged in
 * batches. */
#define ACK_EVERY 1000
/* Polls between two readings of the clock. */
#define SPIN_POLLS 16
/* Polling interval of a thread that can no longer sleep on the descriptors. */
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
	/* A daemon does not close descriptors that it does not own. */
	if (conn->server || gp_fd_guard_is_marked(fd))
		return true;
	if (conn->lost)
		return false;
	conn->lost = true;
	/* The peer may have noticed first and ended the connection. */
	if (!conn->down)
		(void)gp_conn_fail(&conn->stream.conn, -EBADF,
				   "the program has closed descriptors of the library");
	gp_rdma_set_down(conn, -EBADF, "");
	conn_notify(conn);
	return false;
}

/* The kernel's connection manager serves a process only while it has the user ID that opened the
 * channel. */
static void
events_fail(struct gp_rdma_conn *conn, int r) GP_LOCKED(conn->lock)
{
	if (gp_fd_wait(conn->events->fd, POLLIN, 0) <= 0)
		return;
	/* The descriptor stays readable and would prevent all sleeping. */
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
		/* Segments that the peer sent have arrived before the disconnect event. */
		gp_rdma_poll_cq(conn);
		gp_rdma_set_down(conn, -ECONNRESET,
				 type == RDMA_CM_EVENT_DEVICE_REMOVAL
					 ? "the RDMA device was removed"
					 : "the peer disconnected without notice");
		/* The kernel does not change the queue pair's state, so pending requests would not
		 * fail by themselves. */
		gp_rdma_disconnect(conn);
		conn_notify(conn);
	}
	if (errno != EAGAIN && errno != EINTR)
		events_fail(conn, -errno);
}

static void
cq_event_consume(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
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
cq_arm(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	if (conn->armed || conn->lost)
		return;
	conn->armed = ibv_req_notify_cq(conn->cq, 0) == 0;
	if (!conn->armed)
		gp_rdma_set_down(conn, -EIO, "the RDMA device does not report completions");
}

/* Updates notify_fd, so that a caller that polls outside is notified even if another thread has
 * consumed the event. */
static void
watch_notify(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
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
	/* A thread that sleeps for this event must receive it. */
	if (!conn->asleep)
		cq_event_consume(conn);
	cq_arm(conn);
	/* Completions that arrived before arming raise no event. */
	gp_rdma_poll_cq(conn);
	if (gp_rdma_owns_fd(conn, conn->watch_fd))
		watch_notify(conn);
}

/* Reads the clock here and not with each completion, so that round trips are not delayed. */
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

/* A zero-length RDMA write: the peer's device acknowledges it regardless of what the peer process
 * does. */
void
gp_rdma_send_heartbeat(struct gp_rdma_conn *conn)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE };
	int64_t now = gp_now_ms();

	heard_update(conn, now);
	if (conn->down || conn->ended || now - conn->heard_ms < heartbeat_get_ms(conn))
		return;
	conn->heard_ms = now;
	/* Earlier unsignalled requests may be complete without a notification; only a request that
	 * is still to be signalled detects what the heartbeat would. */
	if (conn->retired == conn->signalled)
		(void)gp_rdma_post_send(conn, &wr, true);
}

/* A single thread waits for the device and notifies the others. */
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

/* A thread that keeps finding completions holds the lock all the time; others must get it too,
 * however many segments a peer sends. */
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

/* Called without the lock. Returns whether there is an event; *event_p: one of the connection
 * manager. */
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
	/* After a timeout or a failed epoll_wait(), the event channel is checked anyway. */
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
	/* Another thread may have to take over waiting for the device. */
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
			/* Lets other threads send. */
			pthread_mutex_unlock(&conn->lock);
			pthread_mutex_lock(&conn->lock);
		}
	}
	return gp_rdma_wait(conn, deadline);
}
