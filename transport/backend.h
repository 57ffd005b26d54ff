/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface between the transport and its backends (tcp, unix, shm, tls, rdma); private to this
 * directory.
 *
 * Each operation has the contract of the function of the same name in transport.h. connection.c has
 * checked the sizes of preambles and of sent messages against GP_CONN_PREAMBLE_MAX,
 * GP_CONN_MESSAGE_MAX and GP_CONN_BULK_MAX; backends check what they receive. A backend's
 * connection and listener structs begin with struct gp_conn and struct gp_listener.
 *
 * Ownership: a backend allocates its connections and listeners and frees them in destroy and
 * listener_destroy.
 * Threads: as transport.h; members of struct gp_conn that are not atomic are set before the first
 * message or used by the receiving thread.
 */
#ifndef GP_TRANSPORT_BACKEND_H
#define GP_TRANSPORT_BACKEND_H

#include "transport/transport.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/uio.h>

/* Operations of a backend; static and constant. */
struct gp_transport_ops {
	const char *scheme; /* name of the backend in a URL; url.c lists the names */

	/* Connects and sends the preamble as part of connecting. NULL if the preamble is sent like
	 * other bytes, after `connect`; then `connect` is not NULL. `detail` is "" on entry; the
	 * backend sets it if the errno alone does not explain the failure. */
	int (*connect_with)(const struct gp_url *url, const void *preamble, size_t preamble_size,
			    int timeout_ms, struct gp_conn **conn_p, char *detail,
			    size_t detail_size);
	/* Connects. `ops` is the backend's own table, for functions that several backends share;
	 * `detail` is used as in connect_with. */
	int (*connect)(const struct gp_transport_ops *ops, const struct gp_url *url, int timeout_ms,
		       struct gp_conn **conn_p, char *detail, size_t detail_size);
	/* connect_start and connect_finish are both NULL if connecting takes no time (unix, shm) or
	 * needs more than a socket (rdma). */
	int (*connect_start)(const struct gp_conn *conn, int *fd_p);
	int (*connect_finish)(const struct gp_conn *conn, int fd, int timeout_ms,
			      struct gp_conn **conn_p);
	int (*listen)(const struct gp_transport_ops *ops, const struct gp_url *url,
		      struct gp_listener **listener_p, char *detail, size_t detail_size);
	int (*accept)(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
	/* NULL if connections do not begin as stream sockets. */
	int (*accept_fd)(struct gp_listener *listener, int *fd_p, char peer[GP_URL_TEXT_MAX]);
	int (*listener_fd)(const struct gp_listener *listener);
	void (*listener_destroy)(struct gp_listener *listener);

	/* adopt and release_fd are both NULL without GP_CONN_CAP_ADOPT; shm has only adopt. After a
	 * failure of adopt fd stays the caller's. */
	int (*adopt)(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p);
	int (*release_fd)(struct gp_conn *conn, int *fd_p);

	int (*recv_preamble)(struct gp_conn *conn, void *preamble, size_t size, int timeout_ms);
	int (*send_preamble)(struct gp_conn *conn, const void *preamble, size_t size);
	/* data_size and bulk_size are the sums of the two lists. */
	int (*send)(struct gp_conn *conn, const struct iovec *data, int data_count,
		    const struct iovec *bulk, int bulk_count, size_t data_size, size_t bulk_size);
	int (*recv)(struct gp_conn *conn, struct gp_message *message);
	int (*recv_bulk)(struct gp_conn *conn, void *dst, size_t size);
	bool (*pending)(const struct gp_conn *conn);
	void (*set_spin)(struct gp_conn *conn, unsigned int usec);
	void (*set_stall_timeout)(struct gp_conn *conn, unsigned int ms);
	void (*shutdown)(struct gp_conn *conn);
	int (*fd)(const struct gp_conn *conn);
	void (*fd_unwatch)(struct gp_conn *conn);        /* NULL: fd() needs no disarming */
	bool (*peer_closed)(const struct gp_conn *conn); /* NULL: cannot be detected */
	void (*discard)(struct gp_conn *conn);           /* NULL: no shared memory */
	int (*peer_uid)(const struct gp_conn *conn, uid_t *uid_p);
	/* pass_fd and recv_fd are both NULL without GP_CONN_CAP_PASS_FD. */
	int (*pass_fd)(struct gp_conn *conn, int fd);
	int (*recv_fd)(struct gp_conn *conn);
	/* register_range, has_registered and device are NULL without GP_CONN_CAP_REMOTE_MEM. */
	int (*register_range)(struct gp_conn *conn, void *base, size_t size, int dma_buf);
	bool (*has_registered)(struct gp_conn *conn, const void *base, size_t size);
	const void *(*device)(const struct gp_conn *conn);
	void (*abandon)(struct gp_conn *conn); /* NULL: fd() is closed instead */
	void (*destroy)(struct gp_conn *conn);
};

extern const struct gp_transport_ops gp_tcp_ops;
extern const struct gp_transport_ops gp_unix_ops;
extern const struct gp_transport_ops gp_shm_ops;
extern const struct gp_transport_ops gp_tls_ops;
extern const struct gp_transport_ops gp_rdma_ops;

struct gp_conn {
	const struct gp_transport_ops *ops;
	/* bits of enum gp_conn_cap */
	unsigned int caps;
	char peer[GP_URL_TEXT_MAX];
	char *certificate; /* name in the peer's verified certificate, malloc'ed; NULL: none */
	/* end of the certificate's validity, in seconds since 1970 */
	int64_t certificate_not_after;
	/* hexadecimal, allocated by OpenSSL; NULL: none */
	char *certificate_serial;
	/* the peer's certificates as OpenSSL's list, from its own to the authority; NULL: none */
	struct stack_st_X509 *chain;
	unsigned int send_timeout_ms; /* gp_conn_set_send_timeout() */
	bool nonblocking_send;        /* gp_conn_set_nonblocking_send() */
	unsigned int timeout_ms;      /* gp_conn_set_timeout(); 0: GP_CONN_TIMEOUT_MS */
	/* state of gp_tcp_get_unacknowledged_ms() */
	int64_t unacknowledged_since_ms;
	/* gp_conn_set_stall_callback(); NULL: none */
	bool (*on_stall)(void *arg, unsigned int silent_ms);
	void *on_stall_arg;
	int64_t recv_deadline_ms; /* deadline of gp_conn_set_deadline() by gp_now_ms(); 0: none */
	unsigned int idle_timeout_ms; /* gp_conn_set_idle_timeout(); 0: none */
	_Atomic size_t message_max;   /* limit of data from the peer; 0: GP_CONN_MESSAGE_MAX */
	/* State of `error`, an enum of connection.c: gp_conn_fail() sets the text for the first
	 * failure and never overwrites it, because both the sending and the receiving thread may
	 * fail. */
	atomic_int error_state;
	char error[192];
};

struct gp_listener {
	const struct gp_transport_ops *ops;
	struct gp_url url;
	/* gp_listener_set_admit(); NULL: accepts all. */
	bool (*admit)(void *arg, const char *peer, const void *preamble, size_t size);
	void *admit_arg;
};

/* Sets the connection's error, unless it has one, after a wait of `ms` milliseconds has failed. The
 * text reports that the peer's machine is silent (gp_conn_is_silent()); if it is not, the text is
 * `otherwise` with the time appended. ms 0: the time of gp_conn_set_timeout(). Returns
 * -ETIMEDOUT. */
int gp_conn_fail_timeout(struct gp_conn *conn, unsigned int ms, const char *otherwise);

/* Waits until one of poll()'s `events` or an error is reported for fd, which must not be negative.
 * Returns 1, 0 after timeout_ms (< 0: no limit), or a negative errno. Signals do not end the
 * wait. */
int gp_fd_wait(int fd, short events, int timeout_ms);

#endif /* GP_TRANSPORT_BACKEND_H */
