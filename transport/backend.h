/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a backend of the transport implements; for the files of this folder only.
 *
 * The contract of each operation is that of the function of the same name in transport.h.
 * A backend's connection and listener begin with the structs below.
 */
#ifndef GP_TRANSPORT_BACKEND_H
#define GP_TRANSPORT_BACKEND_H

#include "transport/transport.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/uio.h>

struct gp_transport_ops {
	const char *scheme; /* that url.c knows */

	/* `detail` says why if the errno does not: "" on entry.  The first one is absent where the
	 * preamble is bytes like others; else it is part of connecting. */
	int (*connect_with)(const struct gp_url *url, const void *preamble, size_t preamble_size,
			    int timeout_ms, struct gp_conn **conn_p, char *detail,
			    size_t detail_size);
	int (*connect)(const struct gp_url *url, int timeout_ms, struct gp_conn **conn_p,
		       char *detail, size_t detail_size);
	/* Both absent where connecting takes no time. */
	int (*connect_start)(const struct gp_conn *conn, int *fd_p);
	int (*connect_finish)(const struct gp_conn *conn, int fd, int timeout_ms,
			      struct gp_conn **conn_p);
	int (*listen)(const struct gp_url *url, struct gp_listener **listener_p, char *detail,
		      size_t detail_size);
	int (*accept)(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
	/* Absent where connections do not begin as stream sockets. */
	int (*accept_fd)(struct gp_listener *listener, int *fd_p, char peer[GP_URL_TEXT_MAX]);
	int (*listener_fd)(const struct gp_listener *listener);
	void (*listener_destroy)(struct gp_listener *listener);

	/* Both absent without GP_CONN_CAP_ADOPT; of shm the second only. */
	int (*adopt)(int fd, struct gp_conn **conn_p);
	int (*release_fd)(struct gp_conn *conn, int *fd_p);

	int (*recv_preamble)(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms);
	int (*send_preamble)(struct gp_conn *conn, const void *preamble, size_t size);
	int (*send)(struct gp_conn *conn, const struct iovec *data, int data_count,
		    const struct iovec *bulk, int bulk_count, size_t data_size, size_t bulk_size);
	int (*recv)(struct gp_conn *conn, struct gp_message *message);
	int (*recv_bulk)(struct gp_conn *conn, void *dst, size_t size);
	int (*wait)(struct gp_conn *conn, int timeout_ms);
	bool (*pending)(const struct gp_conn *conn);
	void (*set_spin)(struct gp_conn *conn, unsigned int usec);
	void (*set_stall_timeout)(struct gp_conn *conn, unsigned int ms);
	void (*shutdown)(struct gp_conn *conn);
	int (*fd)(const struct gp_conn *conn);
	void (*fd_unwatch)(struct gp_conn *conn); /* absent: the descriptor tells by itself */
	bool (*peer_closed)(const struct gp_conn *conn); /* absent: it cannot be told */
	void (*discard)(struct gp_conn *conn);           /* absent: there is no shared memory */
	int (*peer_uid)(const struct gp_conn *conn, uid_t *uid_p);
	/* Both absent without GP_CONN_CAP_PASS_FD. */
	int (*pass_fd)(struct gp_conn *conn, int fd);
	int (*recv_fd)(struct gp_conn *conn);
	/* All three absent without GP_CONN_CAP_REMOTE_MEM. */
	int (*register_range)(struct gp_conn *conn, void *base, size_t size, int dma_buf);
	bool (*has_registered)(struct gp_conn *conn, const void *base, size_t size);
	const void *(*device)(const struct gp_conn *conn);
	void (*abandon)(struct gp_conn *conn); /* absent: closes fd() */
	void (*destroy)(struct gp_conn *conn);
};

extern const struct gp_transport_ops gp_tcp_ops;
extern const struct gp_transport_ops gp_unix_ops;
extern const struct gp_transport_ops gp_shm_ops;
extern const struct gp_transport_ops gp_tls_ops;
extern const struct gp_transport_ops gp_loop_ops;
extern const struct gp_transport_ops gp_rdma_ops;

struct gp_conn {
	const struct gp_transport_ops *ops;
	unsigned int caps;
	char peer[GP_URL_TEXT_MAX];
	char *certificate; /* the name in the peer's, verified; NULL without */
	int64_t certificate_not_after;
	char *certificate_serial;
	struct stack_st_X509 *chain;  /* OpenSSL's, from the certificate to the authority */
	unsigned int send_timeout_ms; /* gp_conn_set_send_timeout() */
	bool nonblocking_send;        /* gp_conn_set_nonblocking_send() */
	unsigned int timeout_ms;      /* gp_conn_set_timeout(); 0: GP_CONN_TIMEOUT_MS */
	int64_t unacknowledged_since_ms;
	bool (*on_stall)(void *arg, unsigned int silent_ms); /* gp_conn_set_stall_callback() */
	void *on_stall_arg;
	int64_t recv_deadline_ms;     /* gp_conn_set_deadline(); 0: none */
	unsigned int idle_timeout_ms; /* gp_conn_set_idle_timeout(); 0: none */
	_Atomic size_t message_max;   /* of data, from the peer; 0: GP_CONN_MESSAGE_MAX */
	/* The first failure's text stays: both threads may meet one. */
	atomic_int error_state;
	char error[192];
};

struct gp_listener {
	const struct gp_transport_ops *ops;
	struct gp_url url;
	/* NULL: everybody. */
	bool (*admit)(void *arg, const char *peer, const void *preamble, size_t size);
	void *admit_arg;
};

/* Why a wait of so many milliseconds has failed: the peer's machine is silent, else `otherwise`, to
 * which the time is added.  0: the time of gp_conn_set_timeout().  Returns -ETIMEDOUT. */
int gp_conn_fail_timeout(struct gp_conn *conn, unsigned int ms, const char *otherwise);

/* 1 when one of poll()'s `events` or an error is there, 0 after timeout_ms, or -errno. */
int gp_fd_wait(int fd, short events, int timeout_ms);

#endif /* GP_TRANSPORT_BACKEND_H */
