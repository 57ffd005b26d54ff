/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, listening and accepting with the RDMA connection manager. */
#include "base/clock.h"
#include "base/lock.h"
#include "transport/descriptor.h"
#include "transport/rdma/rdma.h"
#include "transport/socket/tcp.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 128
#define RESOLVE_MS 2000
/* With some devices 7 means no limit; the loss of a peer would then not be detected. */
#define RETRIES 6
/* A receive is posted for every segment that the protocol allows; a device may be late in
 * processing it. */
#define RECEIVER_RETRIES 6
/* Means endless retries: a peer that posts no receives would block its sender forever. With
 * credits, no retries are needed. */
#define RECEIVER_ENDLESS 7

/* Parameters of an end in the private data of the connection request: at most 56 bytes. */
#define HELLO_MAGIC 0x47
#define HELLO_VERSION 1
#define HELLO_SIZE 8
#define HELLO_PREAMBLE_MAX 48

/* Reasons of a rejection: by the connection manager of a machine without a listener, and by the
 * listener. */
#define REJECT_NO_LISTENER 8
#define REJECT_BY_LISTENER 28

struct rdma_listener {
	struct gp_listener listener;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
};

static int
event_channel_open(struct rdma_event_channel **events_p, char *detail, size_t size)
{
	int r = gp_rdma_lib_load(detail, size);

	if (r)
		return r;
	*events_p = gp_rdma_lib.rdma_create_event_channel();
	if (*events_p) {
		int fd = (*events_p)->fd;

		(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
		return 0;
	}
	r = errno == EMFILE || errno == ENFILE ? -errno : -EOPNOTSUPP;
	if (r == -EOPNOTSUPP)
		(void)snprintf(detail, size, "this machine has no RDMA device, or no rdma_cm");
	return r;
}

struct gp_rdma_conn *
gp_rdma_create(struct rdma_event_channel *events, bool server)
{
	struct gp_rdma_conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->events = events;
	conn->server = server;
	conn->poll_fd = conn->wake_fd = -1;
	pthread_mutex_init(&conn->lock, NULL);
	gp_cond_init(&conn->changed);
	if (gp_stream_init(&conn->stream, &gp_rdma_ops, &gp_rdma_io,
			   GP_CONN_CAP_FD | GP_CONN_CAP_REMOTE_MEM)) {
		conn->events = NULL;
		gp_rdma_destroy(&conn->stream.conn);
		return NULL;
	}
	return conn;
}

/* Trailing zero bytes of the preamble are not sent. */
static void
hello_encode(uint8_t hello[HELLO_SIZE + HELLO_PREAMBLE_MAX], const uint8_t *preamble, size_t size)
{
	uint16_t credits = htole16(GP_RDMA_CREDITS);
	uint16_t segment = htole16(GP_RDMA_SEGMENT);

	memset(hello, 0, HELLO_SIZE + HELLO_PREAMBLE_MAX);
	hello[0] = HELLO_MAGIC;
	hello[1] = HELLO_VERSION;
	hello[2] = (uint8_t)size;
	memcpy(hello + 4, &credits, sizeof(credits));
	memcpy(hello + 6, &segment, sizeof(segment));
	if (size > 0)
		memcpy(hello + HELLO_SIZE, preamble,
		       size < HELLO_PREAMBLE_MAX ? size : HELLO_PREAMBLE_MAX);
}

/* Returns the size of the preamble, or -1: not a gpupool peer, or an incompatible one. */
static int
hello_decode(const void *data, size_t size)
{
	const uint8_t *hello = data;
	uint16_t credits, segment;

	if (size < HELLO_SIZE || hello[0] != HELLO_MAGIC || hello[1] != HELLO_VERSION ||
	    hello[2] > GP_RDMA_PREAMBLE_MAX || size < HELLO_SIZE + HELLO_PREAMBLE_MAX)
		return -1;
	memcpy(&credits, hello + 4, sizeof(credits));
	memcpy(&segment, hello + 6, sizeof(segment));
	if (le16toh(credits) != GP_RDMA_CREDITS || le16toh(segment) != GP_RDMA_SEGMENT)
		return -1;
	return hello[2];
}

static bool
hello_fits_preamble(const uint8_t *preamble, size_t size)
{
	if (size > GP_RDMA_PREAMBLE_MAX)
		return false;
	for (size_t i = HELLO_PREAMBLE_MAX; i < size; i++) {
		if (preamble[i])
			return false;
	}
	return true;
}

static void
conn_param_init(const struct gp_rdma_device *device, const uint8_t *hello,
		struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param){
		.private_data = hello,
		.private_data_len = HELLO_SIZE + HELLO_PREAMBLE_MAX,
		.responder_resources = (uint8_t)device->reads_max,
		.initiator_depth = (uint8_t)device->reads_max,
		.retry_count = RETRIES,
		.rnr_retry_count = RECEIVER_RETRIES,
	};
}

/* Translates a failed connection event to an errno and an explanation. */
static int
event_explain(const struct rdma_cm_event *event, char *detail, size_t size)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		if (event->status == -ETIMEDOUT)
			return -ETIMEDOUT;
		(void)snprintf(detail, size, "no RDMA device of this machine reaches this address");
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_REJECTED:
		if (event->status == REJECT_NO_LISTENER)
			return -ECONNREFUSED;
		if (event->status == REJECT_BY_LISTENER)
			(void)snprintf(detail, size, "the connection was refused");
		else
			(void)snprintf(detail, size, "the connection was rejected (reason %d)",
				       event->status);
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		(void)snprintf(detail, size, "the peer's RDMA device does not answer");
		return -ETIMEDOUT;
	default:
		(void)snprintf(detail, size, "RDMA: %s (%d)",
			       gp_rdma_lib.rdma_event_str(event->event), event->status);
		return event->status < 0 ? event->status : -ECONNRESET;
	}
}

/* Waits for this event of the connection; any other event is a failure. */
static int
event_wait(struct gp_rdma_conn *conn, enum rdma_cm_event_type wanted, int64_t deadline,
	   char *detail, size_t size)
{
	struct rdma_cm_event *event;
	int r;

	while (gp_rdma_lib.rdma_get_cm_event(conn->events, &event)) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = gp_fd_wait(conn->events->fd, POLLIN, gp_remaining_ms(deadline));
		if (r <= 0)
			return r ? r : -ETIMEDOUT;
	}
	r = 0;
	if (event->event != wanted)
		r = event_explain(event, detail, size);
	else if (wanted == RDMA_CM_EVENT_ESTABLISHED &&
		 hello_decode(event->param.conn.private_data, event->param.conn.private_data_len) <
			 0)
		r = -EPROTO;
	(void)gp_rdma_lib.rdma_ack_cm_event(event);
	if (r == -EPROTO)
		(void)snprintf(detail, size, "the peer is not a gpupool daemon");
	return r;
}

/* peer: the daemon's address, NULL at the daemon. */
static int
conn_prepare(struct gp_rdma_conn *conn, const struct sockaddr *peer, char *detail, size_t size)
{
	int r = gp_rdma_device_get(conn->id->verbs, peer, &conn->device, detail, size);

	return r ? r : gp_rdma_queue_init(conn, detail, size);
}

static int
conn_handshake(struct gp_rdma_conn *conn, struct sockaddr *address, const uint8_t *hello,
	       int64_t deadline, char *detail, size_t size)
{
	int left = gp_remaining_ms(deadline);
	int resolve_ms = left < 0 || left > RESOLVE_MS ? RESOLVE_MS : left;
	struct rdma_conn_param param;
	int r;

	if (gp_rdma_lib.rdma_create_id(conn->events, &conn->id, conn, RDMA_PS_TCP)) {
		(void)snprintf(detail, size, "this machine has no usable RDMA device: %m");
		return -EOPNOTSUPP;
	}
	if (gp_rdma_lib.rdma_resolve_addr(conn->id, NULL, address, resolve_ms)) {
		(void)snprintf(detail, size,
			       "no RDMA device of this machine reaches this address: %m");
		return -EHOSTUNREACH;
	}
	r = event_wait(conn, RDMA_CM_EVENT_ADDR_RESOLVED, deadline, detail, size);
	if (r == 0 && gp_rdma_lib.rdma_resolve_route(conn->id, resolve_ms)) {
		(void)snprintf(detail, size,
			       "no RDMA device of this machine reaches this address: %m");
		r = -EHOSTUNREACH;
	}
	if (r == 0)
		r = event_wait(conn, RDMA_CM_EVENT_ROUTE_RESOLVED, deadline, detail, size);
	if (r == 0)
		r = conn_prepare(conn, address, detail, size);
	if (r)
		return r;
	conn_param_init(conn->device, hello, &param);
	return gp_rdma_lib.rdma_connect(conn->id, &param)
		       ? -errno
		       : event_wait(conn, RDMA_CM_EVENT_ESTABLISHED, deadline, detail, size);
}

static int
address_connect(const struct addrinfo *address, const uint8_t *hello, int timeout_ms,
		struct gp_conn **conn_p, char *detail, size_t size)
{
	struct rdma_event_channel *events;
	struct gp_rdma_conn *conn;
	int r = event_channel_open(&events, detail, size);

	if (r)
		return r;
	conn = gp_rdma_create(events, false);
	if (!conn) {
		gp_rdma_lib.rdma_destroy_event_channel(events);
		return -ENOMEM;
	}
	r = conn_handshake(conn, address->ai_addr, hello, gp_deadline_ms(timeout_ms), detail, size);
	if (r) {
		conn->down = r;
		conn->disconnected = true;
		gp_rdma_destroy(&conn->stream.conn);
		return r;
	}
	*conn_p = &conn->stream.conn;
	return 0;
}

static int
url_connect(const struct gp_url *url, const void *preamble, size_t preamble_size, int timeout_ms,
	    struct gp_conn **conn_p, char *detail, size_t detail_size)
{
	uint8_t hello[HELLO_SIZE + HELLO_PREAMBLE_MAX];
	bool early = hello_fits_preamble(preamble, preamble_size);
	struct addrinfo *list;
	int64_t deadline;
	int left = 0, r = gp_tcp_resolve(url, false, &list, detail, detail_size);

	if (r)
		return r;
	hello_encode(hello, preamble, early ? preamble_size : 0);
	deadline = gp_deadline_ms(timeout_ms);
	for (const struct addrinfo *a = list; a; a = a->ai_next)
		left++;
	r = -EHOSTUNREACH;
	for (const struct addrinfo *a = list; a && r; a = a->ai_next) {
		/* An address that does not respond must not use up the time of the next ones. */
		int share = gp_remaining_ms(deadline);

		detail[0] = '\0';
		r = address_connect(a, hello, share < 0 ? -1 : share / left--, conn_p, detail,
				    detail_size);
	}
	freeaddrinfo(list);
	if (r || early || preamble_size == 0)
		return r;
	r = gp_conn_send_preamble(*conn_p, preamble, preamble_size);
	if (r)
		gp_conn_destroy(*conn_p);
	return r;
}

int
gp_rdma_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
		int timeout_ms, struct gp_conn **conn_p, char *detail, size_t detail_size)
{
	int r;

	/* The RDMA libraries open descriptors of their own. */
	gp_stdio_placeholders_open();
	r = url_connect(url, preamble, preamble_size, timeout_ms, conn_p, detail, detail_size);
	gp_stdio_placeholders_close();
	return r;
}

int
gp_rdma_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
	       struct gp_listener **listener_p, char *detail, size_t detail_size)
{
	struct rdma_listener *rdma;
	struct addrinfo *list;
	int r = gp_tcp_resolve(url, true, &list, detail, detail_size);

	if (r)
		return r;
	rdma = calloc(1, sizeof(*rdma));
	r = rdma ? event_channel_open(&rdma->events, detail, detail_size) : -ENOMEM;
	if (r == 0 && gp_rdma_lib.rdma_create_id(rdma->events, &rdma->id, NULL, RDMA_PS_TCP))
		r = -errno;
	if (r == 0 && (gp_rdma_lib.rdma_bind_addr(rdma->id, list->ai_addr) ||
		       gp_rdma_lib.rdma_listen(rdma->id, BACKLOG))) {
		r = -errno;
		if (r == -ENODEV)
			(void)snprintf(detail, detail_size,
				       "no RDMA device of this machine has this address");
	}
	freeaddrinfo(list);
	if (r) {
		if (rdma)
			gp_rdma_listener_destroy(&rdma->listener);
		return r;
	}
	rdma->listener.ops = &gp_rdma_ops;
	rdma->listener.url = *url;
	rdma->listener.url.port = ntohs(gp_rdma_lib.rdma_get_src_port(rdma->id));
	*listener_p = &rdma->listener;
	return 0;
}

int
gp_rdma_listener_fd(const struct gp_listener *listener)
{
	return ((const struct rdma_listener *)listener)->events->fd;
}

void
gp_rdma_listener_destroy(struct gp_listener *listener)
{
	struct rdma_listener *rdma = (struct rdma_listener *)listener;

	if (rdma->id)
		(void)gp_rdma_lib.rdma_destroy_id(rdma->id);
	if (rdma->events)
		gp_rdma_lib.rdma_destroy_event_channel(rdma->events);
	free(rdma);
}

static void
peer_format_url(const struct rdma_cm_id *id, char name[GP_URL_TEXT_MAX])
{
	struct gp_url url = { .scheme = "rdma", .host = "unknown", .device = GP_URL_ANY_DEVICE };
	const struct sockaddr *address = &id->route.addr.dst_addr;
	char port[8] = "0";

	(void)getnameinfo(address,
			  address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							 : sizeof(struct sockaddr_in),
			  url.host, sizeof(url.host), port, sizeof(port),
			  NI_NUMERICHOST | NI_NUMERICSERV);
	url.port = (uint16_t)atoi(port);
	gp_url_format(&url, name, GP_URL_TEXT_MAX);
}

/* Creates the queue pair and accepts the request; the connection takes ownership of the id. */
static int
conn_accept(struct gp_rdma_conn *conn, struct rdma_cm_id *id, const struct rdma_conn_param *wanted)
{
	uint8_t hello[HELLO_SIZE + HELLO_PREAMBLE_MAX];
	struct rdma_conn_param param;
	char detail[160];
	int r;

	/* From now on its events are delivered to its own channel only. */
	if (gp_rdma_lib.rdma_migrate_id(id, conn->events))
		return -errno;
	id->context = conn;
	r = conn_prepare(conn, NULL, detail, sizeof(detail));
	if (r)
		return r;
	hello_encode(hello, NULL, 0);
	conn_param_init(conn->device, hello, &param);
	if (param.responder_resources > wanted->responder_resources)
		param.responder_resources = wanted->responder_resources;
	if (param.initiator_depth > wanted->initiator_depth)
		param.initiator_depth = wanted->initiator_depth;
	return gp_rdma_lib.rdma_accept(id, &param) ? -errno : 0;
}

/* Returns 0, GP_E_RESOURCE, or -ECONNABORTED: this request failed; the next one may succeed. */
static int
request_accept(struct rdma_listener *rdma, struct rdma_cm_event *event, struct gp_conn **conn_p)
{
	struct rdma_cm_id *id = event->id;
	struct rdma_conn_param wanted = event->param.conn;
	uint8_t preamble[GP_RDMA_PREAMBLE_MAX] = { 0 };
	struct rdma_event_channel *events;
	struct gp_rdma_conn *conn = NULL;
	char detail[160], peer[GP_URL_TEXT_MAX];
	int size = hello_decode(wanted.private_data, wanted.private_data_len);
	int r;

	if (size > 0)
		memcpy(preamble, (const uint8_t *)wanted.private_data + HELLO_SIZE,
		       size < HELLO_PREAMBLE_MAX ? (size_t)size : HELLO_PREAMBLE_MAX);
	(void)gp_rdma_lib.rdma_ack_cm_event(event);
	peer_format_url(id, peer);
	r = size < 0 || wanted.rnr_retry_count >= RECEIVER_ENDLESS ? -EPROTO : 0;
	if (r == 0 && rdma->listener.admit &&
	    !rdma->listener.admit(rdma->listener.admit_arg, peer, preamble, (size_t)size))
		r = -EACCES;
	if (r == 0)
		r = event_channel_open(&events, detail, sizeof(detail));
	if (r == 0) {
		conn = gp_rdma_create(events, true);
		if (!conn) {
			gp_rdma_lib.rdma_destroy_event_channel(events);
			r = -ENOMEM;
		}
	}
	if (conn) {
		conn->id = id;
		memcpy(conn->early, preamble, (size_t)size);
		conn->early_end = (size_t)size;
		r = conn_accept(conn, id, &wanted);
	}
	if (r == 0) {
		memcpy(conn->stream.conn.peer, peer, sizeof(conn->stream.conn.peer));
		*conn_p = &conn->stream.conn;
		return 0;
	}
	(void)gp_rdma_lib.rdma_reject(id, NULL, 0);
	if (conn) {
		conn->down = r;
		conn->disconnected = true;
		gp_rdma_destroy(&conn->stream.conn);
	} else {
		(void)gp_rdma_lib.rdma_destroy_id(id);
	}
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE ? GP_E_RESOURCE : -ECONNABORTED;
}

int
gp_rdma_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p)
{
	struct rdma_listener *rdma = (struct rdma_listener *)listener;
	int64_t deadline = gp_deadline_ms(timeout_ms);
	struct rdma_cm_event *event;
	int r;

	for (;;) {
		if (gp_rdma_lib.rdma_get_cm_event(rdma->events, &event)) {
			if (errno != EAGAIN && errno != EINTR)
				return -errno;
			r = gp_fd_wait(rdma->events->fd, POLLIN, gp_remaining_ms(deadline));
			if (r < 0)
				return r;
			if (r == 0)
				return GP_E_TIMEOUT;
			continue;
		}
		if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			(void)gp_rdma_lib.rdma_ack_cm_event(event);
			continue;
		}
		r = request_accept(rdma, event, conn_p);
		if (r != -ECONNABORTED)
			return r;
	}
}
