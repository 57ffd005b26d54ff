/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of tcp.c, tcp_connect.c and unix.c that stream socket backends share: connections on a
 * descriptor, and listeners that begin with struct gp_tcp_listener. A function without a comment
 * implements the operation of backend.h of the same name.
 *
 * Ownership: a connection or listener owns its descriptor and closes it when it is destroyed.
 * Threads: as transport.h.
 * Errors: as transport.h.
 */
#ifndef GP_TRANSPORT_TCP_H
#define GP_TRANSPORT_TCP_H

#include "transport/message_stream.h"

#include <netdb.h>
#include <sys/socket.h>

/* A connection on a stream socket. */
struct gp_tcp_conn {
	struct gp_stream stream;
	int fd;
	/* this end has connected, so it is in a program that may close the descriptor and reuse its
	 * number */
	bool client;
	/* tls backend: state of the secured connection, owned by it; NULL until the handshake is
	 * complete */
	struct gp_tls_link *_Atomic tls;
	/* tls backend: handshake whose first message has been sent, owned; NULL: none */
	struct ssl_st *handshake_ssl;
};

/* A listener on a stream socket. */
struct gp_tcp_listener {
	struct gp_listener listener;
	int fd;
};

int gp_tcp_adopt(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p);
int gp_tcp_release_fd(struct gp_conn *conn, int *fd_p);
int gp_tcp_peer_uid(const struct gp_conn *conn, uid_t *uid_p);
bool gp_tcp_peer_closed(const struct gp_conn *conn);
/* Returns the connection's descriptor, or -1 if its number no longer belongs to the connection
 * (gp_tcp_get_fd()). */
int gp_tcp_fd(const struct gp_conn *conn);
void gp_tcp_set_stall_timeout(struct gp_conn *conn, unsigned int ms);
void gp_tcp_destroy(struct gp_conn *conn);

int gp_tcp_connect(const struct gp_transport_ops *ops, const struct gp_url *url, int timeout_ms,
		   struct gp_conn **conn_p, char *detail, size_t detail_size);
int gp_tcp_connect_start(const struct gp_conn *conn, int *fd_p);
int gp_tcp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms,
			  struct gp_conn **conn_p);
int gp_tcp_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
		  struct gp_listener **listener_p, char *detail, size_t detail_size);
/* Closes and frees the listener. */
void gp_tcp_listener_destroy(struct gp_listener *listener);
/* Listens on a local socket at the path of a URL; implements `listen` of the backends unix and
 * shm. */
int gp_unix_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
		   struct gp_listener **listener_p, char *detail, size_t detail_size);
void gp_unix_listener_destroy(struct gp_listener *listener);

/* Resolves the host of a URL; may wait for name servers. passive: for listening, where "*" means
 * all addresses. Returns 0, and the caller frees *list_p with freeaddrinfo(). Otherwise returns a
 * negative errno, with the reason in detail, which is unchanged if the errno explains it. */
int gp_tcp_resolve(const struct gp_url *url, bool passive, struct addrinfo **list_p, char *detail,
		   size_t detail_size);

/* Implements `accept`. The accepted connection has the operations of the listener's backend. */
int gp_tcp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
int gp_tcp_accept_fd(struct gp_listener *listener, int *fd_p, char peer[GP_URL_TEXT_MAX]);
int gp_tcp_listener_fd(const struct gp_listener *listener);

/* The operations that the backends tcp, unix and tls share. */
#define GP_TCP_OPS                                                                                 \
	.accept = gp_tcp_accept, .accept_fd = gp_tcp_accept_fd, .listener_fd = gp_tcp_listener_fd, \
	.peer_uid = gp_tcp_peer_uid, .peer_closed = gp_tcp_peer_closed,                            \
	.recv_preamble = gp_stream_recv_preamble, .send_preamble = gp_stream_send_preamble,        \
	.recv_bulk = gp_stream_recv_bulk, .set_spin = gp_stream_set_spin,                          \
	.set_stall_timeout = gp_tcp_set_stall_timeout, .shutdown = gp_stream_shutdown,             \
	.fd = gp_tcp_fd

/*
 * Returns the descriptor for the next system call, after checking that the program has not reused
 * its number for another file, which must not be written, read or polled. Called before each system
 * call, or once for a series of polls. Otherwise sets gp_conn_error() and returns -1, for which the
 * kernel returns EBADF.
 */
int gp_tcp_get_fd(struct gp_stream *stream);
/* Waits as gp_fd_wait() on the connection's descriptor. Also returns -EBADF if the descriptor was
 * closed or reused. */
int gp_tcp_poll(struct gp_stream *stream, short events, int timeout_ms);

/* Implementations of struct gp_stream_io on a socket. */
ssize_t gp_tcp_read(struct gp_stream *stream, struct iovec *iov, int count, int timeout_ms);
ssize_t gp_tcp_write(struct gp_stream *stream, struct iovec *iov, int count, bool more);
int gp_tcp_wait(struct gp_stream *stream, int timeout_ms);
void gp_tcp_shutdown(struct gp_stream *stream);

#endif /* GP_TRANSPORT_TCP_H */
