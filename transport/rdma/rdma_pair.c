/* SPDX-License-Identifier: Apache-2.0 */
/* Creation of a connection's queue pair and associated objects. */
#include "base/clock.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"
#include "transport/rdma/rdma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define INLINE_WANTED 220
#define TX_SIZE (GP_RDMA_TX * GP_RDMA_SEGMENT + (size_t)GP_RDMA_SEND_QUEUE * GP_RDMA_CONTROL_SIZE)

static int
epoll_add(int poll_fd, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data = { .fd = fd } };
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ||
	    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	gp_fd_guard_mark(fd);
	return 0;
}

static int
descriptors_create(struct gp_rdma_conn *conn)
{
	int r;

	conn->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	conn->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	conn->channel = gp_rdma_lib.ibv_create_comp_channel(conn->device->verbs);
	if (conn->poll_fd < 0 || conn->wake_fd < 0 || !conn->channel)
		return errno ? -errno : -EMFILE;
	gp_fd_guard_mark(conn->poll_fd);
	r = epoll_add(conn->poll_fd, conn->wake_fd);
	if (r == 0)
		r = epoll_add(conn->poll_fd, conn->channel->fd);
	return r ? r : epoll_add(conn->poll_fd, conn->events->fd);
}

bool
gp_rdma_watch_init(struct gp_rdma_conn *conn)
{
	if (conn->watched)
		return true;
	gp_stdio_placeholders_open();
	conn->watch_fd = gp_fd_move_above_stdio(epoll_create1(EPOLL_CLOEXEC));
	conn->notify_fd = gp_fd_move_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	gp_stdio_placeholders_close();
	conn->watched = conn->watch_fd >= 0 && conn->notify_fd >= 0 &&
			epoll_add(conn->watch_fd, conn->notify_fd) == 0 &&
			epoll_add(conn->watch_fd, conn->channel->fd) == 0 &&
			epoll_add(conn->watch_fd, conn->events->fd) == 0;
	if (conn->watched)
		gp_fd_guard_mark(conn->watch_fd);
	if (!conn->watched && conn->watch_fd >= 0)
		(void)close(conn->watch_fd);
	if (!conn->watched && conn->notify_fd >= 0)
		(void)close(conn->notify_fd);
	return conn->watched;
}

void
gp_rdma_close_descriptors(struct gp_rdma_conn *conn)
{
	gp_fd_guard_close(conn->poll_fd);
	gp_fd_guard_close(conn->wake_fd);
	if (conn->watched) {
		gp_fd_guard_close(conn->watch_fd);
		gp_fd_guard_close(conn->notify_fd);
	}
	gp_fd_guard_close(conn->events->fd);
	gp_fd_guard_close(conn->channel->fd);
}

static int
queue_pair_create(struct gp_rdma_conn *conn)
{
	static const unsigned int inlines[] = { INLINE_WANTED, 64, 0 };
	int r = -EINVAL;

	for (size_t i = 0; r && i < sizeof(inlines) / sizeof(inlines[0]); i++) {
		struct ibv_qp_init_attr attr = {
			.qp_type = IBV_QPT_RC,
			.send_cq = conn->cq,
			.recv_cq = conn->cq,
			.cap = { .max_send_wr = GP_RDMA_SEND_QUEUE,
				 .max_recv_wr = GP_RDMA_RX,
				 .max_send_sge = 1,
				 .max_recv_sge = 1,
				 .max_inline_data = inlines[i] },
		};

		r = gp_rdma_lib.rdma_create_qp(conn->id, conn->device->pd, &attr) ? -errno : 0;
		conn->inline_max = attr.cap.max_inline_data;
	}
	return r;
}

int
gp_rdma_queue_init(struct gp_rdma_conn *conn, char *detail, size_t size) GP_LOCK_UNCHECKED
{
	int r = descriptors_create(conn);

	if (r)
		return r;
	conn->cq = gp_rdma_lib.ibv_create_cq(conn->device->verbs, GP_RDMA_SEND_QUEUE + GP_RDMA_RX,
					     NULL, conn->channel, 0);
	if (!conn->cq)
		return errno ? -errno : -ENOMEM;
	r = gp_rdma_memory_alloc(conn->device, TX_SIZE, false, &conn->tx, &conn->tx_mr);
	if (r == 0)
		r = gp_rdma_memory_alloc(conn->device, GP_RDMA_RX * GP_RDMA_SEGMENT, false,
					 &conn->rx, &conn->rx_mr);
	if (r)
		(void)snprintf(detail, size,
			       "memory cannot be registered with the RDMA device: %s (limit: "
			       "ulimit -l)",
			       strerror(-r));
	if (r == 0)
		r = queue_pair_create(conn);
	for (unsigned int i = 0; r == 0 && i < GP_RDMA_RX; i++)
		gp_rdma_post_receive(conn, i);
	conn->credits = GP_RDMA_CREDITS;
	conn->heard_ms = gp_now_ms();
	return r ? r : conn->down;
}

void
gp_rdma_queue_fini(struct gp_rdma_conn *conn)
{
	if (conn->id && conn->id->qp)
		gp_rdma_lib.rdma_destroy_qp(conn->id);
	if (conn->cq) {
		if (conn->unacked_events)
			gp_rdma_lib.ibv_ack_cq_events(conn->cq, conn->unacked_events);
		(void)gp_rdma_lib.ibv_destroy_cq(conn->cq);
	}
	if (conn->channel)
		(void)gp_rdma_lib.ibv_destroy_comp_channel(conn->channel);
	gp_rdma_memory_free(conn->tx, TX_SIZE, conn->tx_mr);
	gp_rdma_memory_free(conn->rx, GP_RDMA_RX * GP_RDMA_SEGMENT, conn->rx_mr);
	if (conn->wake_fd >= 0)
		(void)close(conn->wake_fd);
	if (conn->poll_fd >= 0)
		(void)close(conn->poll_fd);
	if (conn->watched) {
		(void)close(conn->watch_fd);
		(void)close(conn->notify_fd);
	}
}
