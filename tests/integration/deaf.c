/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deaf HOST: a peer that receives nothing over RDMA, against a listener of the transport in the
 * same process.  It connects without our library, announces memory for bulk, and posts no receives,
 * so the device retries each send.  Prints the result when the peer asks for endless retries, when
 * the sender has a time limit, and when the sender's connection is shut down.
 */
#include "transport/transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ENDLESS 7
#define BULK ((size_t)8 << 20)
#define ROOMS 4
#define ROOM 5 /* the segment's type (wire.md) */
#define LIMIT_MS 1000
/* Long before the device gives up by itself. */
#define SOON 3.0

struct peer {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	char host[64];
	uint16_t port;
	int retries;
};

static void
need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static enum rdma_cm_event_type
next_event(const struct peer *peer)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;

	need(rdma_get_cm_event(peer->events, &event) == 0, "event");
	type = event->event;
	(void)rdma_ack_cm_event(event);
	return type;
}

static void
prepare(struct peer *peer)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(peer->port) };
	struct ibv_qp_init_attr wanted = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	need(inet_pton(AF_INET, peer->host, &address.sin_addr) == 1, "address");
	peer->events = rdma_create_event_channel();
	need(peer->events && rdma_create_id(peer->events, &peer->id, NULL, RDMA_PS_TCP) == 0 &&
		     rdma_resolve_addr(peer->id, NULL, (struct sockaddr *)&address, 2000) == 0 &&
		     next_event(peer) == RDMA_CM_EVENT_ADDR_RESOLVED &&
		     rdma_resolve_route(peer->id, 2000) == 0 &&
		     next_event(peer) == RDMA_CM_EVENT_ROUTE_RESOLVED,
	     "resolve");
	peer->pd = ibv_alloc_pd(peer->id->verbs);
	peer->cq = ibv_create_cq(peer->id->verbs, 16, NULL, NULL, 0);
	wanted.send_cq = wanted.recv_cq = peer->cq;
	need(peer->pd && peer->cq && rdma_create_qp(peer->id, peer->pd, &wanted) == 0,
	     "queue pair");
	peer->memory = aligned_alloc(4096, BULK + 4096);
	need(peer->memory != NULL, "memory");
	peer->mr = ibv_reg_mr(peer->pd, peer->memory, BULK + 4096,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	need(peer->mr != NULL, "registration");
}

/* Room for a part of the bulk. */
static void
name_room(const struct peer *peer, int number)
{
	uint8_t *segment = peer->memory + BULK;
	struct ibv_sge sge = { (uintptr_t)segment, 24, peer->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	uint64_t place = (uintptr_t)peer->memory + (size_t)number * (BULK / ROOMS);
	uint32_t fields = 16, size = BULK / ROOMS;
	struct ibv_wc wc;

	memset(segment, 0, 8);
	segment[0] = ROOM;
	memcpy(segment + 4, &fields, 4);
	memcpy(segment + 8, &place, 8);
	memcpy(segment + 16, &peer->mr->rkey, 4);
	memcpy(segment + 20, &size, 4);
	need(ibv_post_send(peer->id->qp, &wr, &bad) == 0, "send");
	while (ibv_poll_cq(peer->cq, 1, &wc) == 0)
		;
	need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
}

static void *
connect_peer(void *arg)
{
	/* Magic, version, no preamble, 32 credits, segments of 8192 bytes. */
	static const uint8_t hello[56] = { 0x47, 1, 0, 0, 32, 0, 0, 0x20 };
	struct peer *peer = arg;
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(hello),
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 6,
		.rnr_retry_count = (uint8_t)peer->retries,
	};
	enum rdma_cm_event_type type;

	prepare(peer);
	need(rdma_connect(peer->id, &param) == 0, "connect");
	type = next_event(peer);
	if (peer->retries == ENDLESS) {
		printf("endless retries: %s\n",
		       type == RDMA_CM_EVENT_REJECTED ? "rejected" : rdma_event_str(type));
		return NULL;
	}
	need(type == RDMA_CM_EVENT_ESTABLISHED, rdma_event_str(type));
	for (int i = 0; i < ROOMS; i++)
		name_room(peer, i);
	return NULL;
}

static void *
shut_down(void *conn)
{
	(void)usleep(500000);
	gp_conn_shutdown(conn);
	return NULL;
}

static void
release(struct peer *peer)
{
	rdma_destroy_qp(peer->id);
	(void)ibv_dereg_mr(peer->mr);
	free(peer->memory);
	(void)ibv_destroy_cq(peer->cq);
	(void)ibv_dealloc_pd(peer->pd);
	(void)rdma_destroy_id(peer->id);
	rdma_destroy_event_channel(peer->events);
}

/* The bulk is written to the peer's memory; the message that announces it is never received. */
static void
send_to(struct peer *peer, struct gp_listener *listener, bool limited)
{
	char *memory = calloc(1, BULK);
	struct iovec data = { (char[16]){ "" }, 16 }, bulk = { memory, BULK };
	pthread_t connecting, ending;
	struct gp_conn *conn;
	double begin;
	int r;

	peer->retries = 6;
	need(pthread_create(&connecting, NULL, connect_peer, peer) == 0, "thread");
	need(gp_accept(listener, 10000, &conn) == 0, "accept");
	(void)pthread_join(connecting, NULL);
	if (limited)
		gp_conn_set_send_timeout(conn, LIMIT_MS);
	else
		need(pthread_create(&ending, NULL, shut_down, conn) == 0, "thread");
	begin = now();
	r = gp_conn_send(conn, &data, 1, &bulk, 1);
	printf("%s: %s, %s\n", limited ? "a time limit" : "shut down",
	       r == -ETIMEDOUT   ? "timed out"
	       : r == -ESHUTDOWN ? "shut down"
				 : gp_conn_error(conn),
	       now() - begin < SOON ? "soon" : "late");
	if (!limited)
		(void)pthread_join(ending, NULL);
	gp_conn_destroy(conn);
	free(memory);
	release(peer);
}

int
main(int argc, char **argv)
{
	struct gp_listener *listener;
	struct peer peer = { 0 };
	struct gp_conn *conn;
	pthread_t connecting;
	char error[400], text[128];
	struct gp_url url;

	(void)snprintf(text, sizeof(text), "rdma://%s:0", argc == 2 ? argv[1] : "");
	if (argc != 2 || gp_url_parse(text, &url, error, sizeof(error)) ||
	    gp_listen(&url, &listener, error, sizeof(error))) {
		fprintf(stderr, "usage: deaf HOST, which has an RDMA device\n");
		return 2;
	}
	(void)snprintf(peer.host, sizeof(peer.host), "%s", argv[1]);
	peer.port = gp_listener_url(listener)->port;
	peer.retries = ENDLESS;
	need(pthread_create(&connecting, NULL, connect_peer, &peer) == 0, "thread");
	if (gp_accept(listener, 2000, &conn) == 0)
		printf("it was accepted\n");
	(void)pthread_join(connecting, NULL);
	release(&peer);
	send_to(&peer, listener, true);
	send_to(&peer, listener, false);
	gp_listener_destroy(listener);
	return 0;
}
