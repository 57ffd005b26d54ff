/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fake_rdma.h"

#include "transport/private_fd.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct ibv_pd pd = { .context = &fake_rdma.verbs };
static struct ibv_cq cq = { .context = &fake_rdma.verbs };
static struct rdma_cm_id id = { .verbs = &fake_rdma.verbs };
static struct rdma_event_channel events;

struct fake_rdma fake_rdma = {
	.qp = { .context = &fake_rdma.verbs },
	.device = { .verbs = &fake_rdma.verbs, .pd = &pd, .reads_max = 4 },
};

static int
req_notify_cq(struct ibv_cq *of, int solicited)
{
	return 0;
}

static struct ibv_comp_channel *
create_channel(struct ibv_context *of)
{
	fake_rdma.channel.fd = eventfd(0, EFD_CLOEXEC);
	return fake_rdma.channel.fd < 0 ? NULL : &fake_rdma.channel;
}

static int
destroy_channel(struct ibv_comp_channel *of)
{
	return close(of->fd);
}

static struct ibv_cq *
create_cq(struct ibv_context *of, int room, void *arg, struct ibv_comp_channel *to, int vector)
{
	return &cq;
}

static int
destroy_cq(struct ibv_cq *of)
{
	return 0;
}

static int
no_cq_event(struct ibv_comp_channel *of, struct ibv_cq **cq_p, void **context_p)
{
	errno = EAGAIN;
	return -1;
}

static void
ack_cq_events(struct ibv_cq *of, unsigned int count)
{
}

static int
create_qp(struct rdma_cm_id *of, struct ibv_pd *in, struct ibv_qp_init_attr *attr)
{
	of->qp = &fake_rdma.qp;
	return 0;
}

static void
destroy_qp(struct rdma_cm_id *of)
{
	of->qp = NULL;
}

static int
no_cm_event(struct rdma_event_channel *of, struct rdma_cm_event **event_p)
{
	errno = EAGAIN;
	return -1;
}

static int
disconnect(struct rdma_cm_id *of)
{
	return 0;
}

static int
destroy_id(struct rdma_cm_id *of)
{
	return 0;
}

static void
destroy_events(struct rdma_event_channel *of)
{
	(void)close(of->fd);
}

static const char *
status_text(enum ibv_wc_status status)
{
	return "a status";
}

void
fake_rdma_set_up(void)
{
	fake_rdma.verbs.ops.req_notify_cq = req_notify_cq;
	gp_rdma_lib.ibv_create_comp_channel = create_channel;
	gp_rdma_lib.ibv_destroy_comp_channel = destroy_channel;
	gp_rdma_lib.ibv_create_cq = create_cq;
	gp_rdma_lib.ibv_destroy_cq = destroy_cq;
	gp_rdma_lib.ibv_get_cq_event = no_cq_event;
	gp_rdma_lib.ibv_ack_cq_events = ack_cq_events;
	gp_rdma_lib.ibv_wc_status_str = status_text;
	gp_rdma_lib.rdma_create_qp = create_qp;
	gp_rdma_lib.rdma_destroy_qp = destroy_qp;
	gp_rdma_lib.rdma_get_cm_event = no_cm_event;
	gp_rdma_lib.rdma_disconnect = disconnect;
	gp_rdma_lib.rdma_destroy_id = destroy_id;
	gp_rdma_lib.rdma_destroy_event_channel = destroy_events;
}

/* Creates the descriptors that opening a device would create. */
static bool
open_descriptors(struct ibv_context *verbs)
{
	if (verbs->cmd_fd == 0) {
		verbs->cmd_fd = eventfd(0, EFD_CLOEXEC);
		verbs->async_fd = eventfd(0, EFD_CLOEXEC);
	}
	gp_fd_guard_mark(verbs->cmd_fd);
	events.fd = eventfd(0, EFD_CLOEXEC);
	return verbs->cmd_fd >= 0 && verbs->async_fd >= 0 && events.fd >= 0;
}

struct gp_rdma_conn *
fake_rdma_create(bool server)
{
	struct gp_rdma_conn *conn;
	char detail[160];

	if (!open_descriptors(&fake_rdma.verbs))
		return NULL;
	conn = gp_rdma_create(&events, server);
	if (!conn)
		return NULL;
	conn->id = &id;
	conn->device = &fake_rdma.device;
	return gp_rdma_queue_init(conn, detail, sizeof(detail)) ? NULL : conn;
}
