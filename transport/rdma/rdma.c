/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/rdma/rdma.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* With longer polling, a kernel thread that performs the device's work in software would be starved
 * of the processor. */
#define SPIN_USEC_MAX 50

/* Hands bytes that no thread will send to the progress thread. */
static int
send_finish(struct gp_rdma_conn *conn, int r)
{
	bool waits;

	pthread_mutex_lock(&conn->lock);
	waits = conn->tx_post != conn->tx_fill;
	pthread_mutex_unlock(&conn->lock);
	if (r == 0 && waits)
		gp_rdma_progress_add(conn);
	return r;
}

static int
rdma_send(struct gp_conn *base, const struct iovec *data, int data_count, const struct iovec *bulk,
	  int bulk_count, size_t data_size, size_t bulk_size)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma(base);
	int r;

	if (bulk_size < GP_RDMA_DIRECT_MIN)
		return send_finish(conn, gp_stream_send(base, data, data_count, bulk, bulk_count,
							data_size, bulk_size));
	r = gp_stream_send_head(&conn->stream, data, data_count, data_size, bulk_size);
	if (r)
		return r;
	r = gp_rdma_send_bulk(conn, bulk, bulk_count);
	return r ? gp_stream_fail_send(&conn->stream, r) : 0;
}

static int
rdma_send_preamble(struct gp_conn *base, const void *preamble, size_t size)
{
	return send_finish(gp_conn_to_rdma(base), gp_stream_send_preamble(base, preamble, size));
}

static int
rdma_recv_bulk(struct gp_conn *base, void *dst, size_t size)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma(base);
	int r;

	if (conn->direct_left == 0)
		return gp_stream_recv_bulk(base, dst, size);
	if (size > conn->direct_left)
		return GP_E_INVALID;
	if (conn->stream.recv_status)
		return conn->stream.recv_status;
	r = gp_rdma_recv_bulk(conn, dst, size);
	if (r == 0)
		conn->direct_left -= size;
	return r ? gp_stream_fail_recv(&conn->stream, r == -EPIPE ? 0 : r, true) : 0;
}

static int
rdma_recv(struct gp_conn *base, struct gp_message *message)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma(base);
	int r = conn->direct_left ? rdma_recv_bulk(base, NULL, conn->direct_left) : 0;

	if (r == 0)
		r = gp_stream_recv(base, message);
	if (r == 0 && message->bulk_size >= GP_RDMA_DIRECT_MIN) {
		conn->stream.bulk_left = 0;
		conn->direct_left = message->bulk_size;
	}
	return r;
}

static bool
rdma_pending(const struct gp_conn *base)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma((struct gp_conn *)base);
	bool pending;

	pthread_mutex_lock(&conn->lock);
	pending = conn->rx_count > 0;
	pthread_mutex_unlock(&conn->lock);
	return pending || gp_stream_pending(base);
}

static int
rdma_fd(const struct gp_conn *base)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma((struct gp_conn *)base);
	bool watched, lost;

	pthread_mutex_lock(&conn->lock);
	watched = gp_rdma_watch_init(conn);
	if (watched)
		gp_rdma_arm_watch(conn);
	lost = conn->lost;
	pthread_mutex_unlock(&conn->lock);
	return watched && !lost ? conn->watch_fd : -1;
}

static int
rdma_peer_uid(const struct gp_conn *conn, uid_t *uid_p)
{
	return GP_E_UNSUPPORTED;
}

static int
rdma_register_range(struct gp_conn *base, void *memory, size_t size, int dma_buf)
{
	return gp_rdma_register_range(gp_conn_to_rdma(base)->device, memory, size, dma_buf);
}

static bool
rdma_has_registered(struct gp_conn *base, const void *memory, size_t size)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma(base);

	return size >= GP_RDMA_DIRECT_MIN && conn->server &&
	       gp_rdma_get_registration(conn->device, memory, size, false);
}

static const void *
rdma_device(const struct gp_conn *base)
{
	return ((const struct gp_rdma_conn *)base)->device;
}

static void
rdma_abandon(struct gp_conn *base)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma(base);

	/* The device preserves the queue pair for the peer while any process has the descriptors
	 * open. */
	gp_rdma_close_descriptors(conn);
	gp_rdma_device_abandon(conn->device);
}

/* Waits, up to a limit, until the peer has consumed everything that was sent. */
static void
conn_linger(struct gp_rdma_conn *conn)
{
	int64_t deadline = gp_deadline_ms(GP_RDMA_LINGER_MS);

	pthread_mutex_lock(&conn->lock);
	conn->ending = true;
	gp_rdma_poll_cq(conn);
	gp_rdma_flush(conn);
	while (!conn->down && !conn->ended &&
	       (!conn->end_number || conn->retired < conn->end_number ||
		conn->taken < conn->offered)) {
		if (gp_rdma_wait(conn, deadline) || gp_remaining_ms(deadline) == 0)
			break;
	}
	gp_rdma_disconnect(conn);
	pthread_mutex_unlock(&conn->lock);
}

static void
conn_destroy_objects(struct gp_rdma_conn *conn)
{
	gp_rdma_queue_fini(conn);
	gp_rdma_bulk_fini(conn);
	if (conn->id)
		(void)gp_rdma_lib.rdma_destroy_id(conn->id);
	if (conn->events)
		gp_rdma_lib.rdma_destroy_event_channel(conn->events);
}

void
gp_rdma_destroy(struct gp_conn *base)
{
	struct gp_rdma_conn *conn = gp_conn_to_rdma(base);

	if (conn->id && conn->id->qp && conn->tx) {
		gp_rdma_progress_remove(conn);
		conn_linger(conn);
	}
	if (conn->lost)
		/* The remaining objects are left to the kernel until the process ends: the
		 * libraries would write to descriptors that now belong to the program. */
		gp_rdma_close_descriptors(conn);
	else
		conn_destroy_objects(conn);
	pthread_cond_destroy(&conn->changed);
	pthread_mutex_destroy(&conn->lock);
	gp_stream_fini(&conn->stream);
	free(conn);
}

static void
rdma_set_spin(struct gp_conn *base, unsigned int usec)
{
	usec = usec < SPIN_USEC_MAX ? usec : SPIN_USEC_MAX;
	atomic_store(&gp_conn_to_rdma(base)->spin_usec, usec);
	gp_stream_set_spin(base, usec);
}

const struct gp_transport_ops gp_rdma_ops = {
	.scheme = "rdma",
	.connect_with = gp_rdma_connect,
	.listen = gp_rdma_listen,
	.accept = gp_rdma_accept,
	.listener_fd = gp_rdma_listener_fd,
	.listener_destroy = gp_rdma_listener_destroy,
	.recv_preamble = gp_stream_recv_preamble,
	.send_preamble = rdma_send_preamble,
	.send = rdma_send,
	.recv = rdma_recv,
	.recv_bulk = rdma_recv_bulk,
	.pending = rdma_pending,
	.set_spin = rdma_set_spin,
	.set_stall_timeout = gp_stream_set_stall_timeout,
	.shutdown = gp_stream_shutdown,
	.fd = rdma_fd,
	.peer_uid = rdma_peer_uid,
	.register_range = rdma_register_range,
	.has_registered = rdma_has_registered,
	.device = rdma_device,
	.abandon = rdma_abandon,
	.destroy = gp_rdma_destroy,
};
