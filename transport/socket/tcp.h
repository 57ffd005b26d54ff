/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What backends over other stream sockets take from tcp.c: connections on a descriptor, and
 * listeners that begin with struct gp_tcp_listener.  Each is the operation of backend.h that it is
 * named after.
 */
#ifndef GP_TRANSPORT_TCP_H
#define GP_TRANSPORT_TCP_H

#include "transport/message_stream.h"

#include <netdb.h>
#include <sys/socket.h>

struct gp_tcp_conn {
	struct gp_stream stream;
	int fd;
	bool client; /* whose program may close the descriptor, and open another of its number */
	struct gp_tls_link *_Atomic tls; /* of tls, once it is secure; else NULL */
	struct ssl_st *handshake_ssl;    /* of tls: a handshake whose first message is sent */
};

struct gp_tcp_listener {
	struct gp_listener listener;
	int fd;
};

/* gp_conn_adopt() for a backend with these operations. */
int gp_tcp_adopt_as(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p);
int gp_tcp_release_fd(struct gp_conn *conn, int *fd_p);
int gp_tcp_peer_uid(const struct gp_conn *conn, uid_t *uid_p);
bool gp_tcp_peer_closed(const struct gp_conn *conn);
/* -1: it is not the connection's any more, as of gp_tcp_get_fd(). */
int gp_tcp_fd(const struct gp_conn *conn);
void gp_tcp_set_stall_timeout(struct gp_conn *conn, unsigned int ms);
void gp_tcp_destroy(struct gp_conn *conn);

/* A connection or listener of the backend with these operations. */
int gp_tcp_connect_as(const struct gp_transport_ops *ops, const struct gp_url *url, int timeout_ms,
		      struct gp_conn **conn_p, char *detail, size_t detail_size);
int gp_tcp_connect_start(const struct gp_conn *conn, int *fd_p);
int gp_tcp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms,
			  struct gp_conn **conn_p);
int gp_tcp_listen_as(const struct gp_transport_ops *ops, const struct gp_url *url,
		     struct gp_listener **listener_p, char *detail, size_t detail_size);
void gp_tcp_listener_destroy(struct gp_listener *listener);

/* What the host of the URL means, to connect to or (passive) to listen on, where "*" is all; for
 * freeaddrinfo().  0, or -errno, and detail says why if that does not. */
int gp_tcp_resolve(const struct gp_url *url, bool passive, struct addrinfo **list_p, char *detail,
		   size_t detail_size);

/* Adopts as the listener's backend does. */
int gp_tcp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
int gp_tcp_accept_fd(struct gp_listener *listener, int *fd_p, char peer[GP_URL_TEXT_MAX]);
int gp_tcp_listener_fd(const struct gp_listener *listener);

/*
 * The descriptor for the next system call on it, which is asked for before each, but once for a few
 * looks in a row: what a program has opened under its number is not to be written to, read from or
 * waited for.  -1, which the kernel refuses with EBADF, and gp_conn_error() says why.
 */
int gp_tcp_get_fd(struct gp_stream *stream);
/* gp_fd_wait() for it, or -EBADF. */
int gp_tcp_poll(struct gp_stream *stream, short events, int timeout_ms);

/* As in struct gp_stream_io. */
ssize_t gp_tcp_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms);
ssize_t gp_tcp_write(struct gp_stream *stream, struct iovec *iov, int count, bool more);
int gp_tcp_wait(struct gp_stream *stream, int timeout_ms);
void gp_tcp_shutdown(struct gp_stream *stream);

#endif /* GP_TRANSPORT_TCP_H */
