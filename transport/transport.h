/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message transport between two processes, independent of the messages' content, over tcp, unix
 * sockets, shared memory, tls, rdma or within a process (loop). A message has data (small, received
 * into a buffer of the connection) and bulk (large, received directly into memory of the caller).
 *
 * Ownership: the creator of a connection or listener destroys it, when no thread is inside a call
 * on it.
 * Threads: one thread may send while another receives. Several senders, or several receivers, need
 * a lock of the caller.
 * Errors: 0; a negative errno if the connection is dead (all later calls return the same;
 * gp_conn_error() explains it); or a positive GP_E_* code named at the function.
 *
 * Callers test capabilities (enum gp_conn_cap), never the scheme of a connection.
 */
#ifndef GP_TRANSPORT_H
#define GP_TRANSPORT_H

#include "base/status.h"
#include "transport/url.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Maximum data of a message. */
#define GP_CONN_MESSAGE_MAX ((size_t)256 << 10)
/* Maximum bulk of a message. */
#define GP_CONN_BULK_MAX ((size_t)UINT32_MAX)
/* Maximum size of the raw bytes before the first message. */
#define GP_CONN_PREAMBLE_MAX ((size_t)256)
/* Default time for which a peer may be silent. */
#define GP_CONN_TIMEOUT_MS 30000

struct gp_conn;
struct gp_listener;

enum gp_conn_cap {
	GP_CONN_CAP_FD = 1 << 0,        /* gp_conn_fd() can be polled for reading */
	GP_CONN_CAP_ADOPT = 1 << 1,     /* the descriptor can be passed to another process */
	GP_CONN_CAP_ENCRYPTED = 1 << 2, /* encrypted and authenticated */
	GP_CONN_CAP_LOCAL = 1 << 3,     /* the peer is on this machine */
	/* Bulk can be transferred directly between memories (RDMA). */
	GP_CONN_CAP_REMOTE_MEM = 1 << 4,
	GP_CONN_CAP_PASS_FD = 1 << 5, /* the accepting end can send file descriptors */
};

struct gp_message {
	const void *data; /* aligned to 8; valid until the next gp_conn_recv() */
	size_t size;      /* at most GP_CONN_MESSAGE_MAX, may be 0 */
	size_t bulk_size; /* to be received with gp_conn_recv_bulk() */
};

/*
 * Connects to a daemon, trying all addresses of the host. timeout_ms < 0: the system's limit;
 * resolving the host name is not included in the timeout. The preamble, if any, is sent first,
 * unencrypted, on every backend. On failure returns a negative errno, and `error` explains it.
 */
GP_MUST_CHECK int gp_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
			     int timeout_ms, struct gp_conn **conn_p, char *error,
			     size_t error_size);

/*
 * Starts a further connection to the same address without waiting. *fd_p belongs to the caller
 * until gp_connect_finish(), which takes ownership in any case, waits for the connection and sends
 * nothing; -ETIMEDOUT: not connected within timeout_ms. GP_E_UNSUPPORTED: connecting takes no time
 * on this backend, or needs more than a socket.
 */
GP_MUST_CHECK int gp_connect_start(const struct gp_conn *conn, int *fd_p);
GP_MUST_CHECK int gp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms,
				    struct gp_conn **conn_p);

/* Called before listening by a process that will later run as this user: besides root and the
 * process's current user, this user may also own the directories that lead to a local socket. */
void gp_listen_set_owner(uid_t uid);

/* Listen on an address. With port 0, gp_listen() uses any free port, which gp_listener_url()
 * returns. gp_listen_any_port() always uses any free port, and its error text names the URL
 * unchanged. */
GP_MUST_CHECK int gp_listen_any_port(const struct gp_url *url, struct gp_listener **listener_p,
				     char *error, size_t error_size);
GP_MUST_CHECK int gp_listen(const struct gp_url *url, struct gp_listener **listener_p, char *error,
			    size_t error_size);

/*
 * Accepts a connection. GP_E_TIMEOUT: none within timeout_ms (0: does not wait, < 0: waits without
 * limit). GP_E_RESOURCE: no descriptor or memory at the moment.
 */
GP_MUST_CHECK int gp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);

/*
 * Accepts a connection as a descriptor, before anything is allocated for it; gp_conn_adopt() with
 * the listener's scheme turns it into a connection. Only for listeners on stream sockets. Never
 * waits. peer: as gp_conn_peer() will return it.
 * GP_E_TIMEOUT: no connection is pending. GP_E_EOF: the peer has closed the connection without
 * sending anything. GP_E_RESOURCE: as gp_accept().
 */
GP_MUST_CHECK int gp_listener_accept_fd(struct gp_listener *listener, int *fd_p,
					char peer[GP_URL_TEXT_MAX]);

/*
 * Sets a callback that decides on a new connection by its preamble, before resources are allocated
 * for it; gp_accept() rejects the connection if it returns false. Only called where the preamble is
 * part of connecting (rdma). peer: as gp_conn_peer().
 */
void gp_listener_set_admit(struct gp_listener *listener,
			   bool (*admit)(void *arg, const char *peer, const void *preamble,
					 size_t size),
			   void *arg);

/* Returns a descriptor that is readable when gp_accept() would not wait. */
int gp_listener_fd(const struct gp_listener *listener);
const struct gp_url *gp_listener_url(const struct gp_listener *listener);
/* Closes the listener. */
void gp_listener_destroy(struct gp_listener *listener);

/*
 * Creates a connection on a connected descriptor that was passed to this process, and takes
 * ownership of it on success only. Scheme "shm": a local socket whose other end connects to shm: as
 * well; this end creates the memory. GP_E_UNSUPPORTED: no GP_CONN_CAP_ADOPT. GP_E_INVALID: unknown
 * scheme.
 */
GP_MUST_CHECK int gp_conn_adopt(const char *scheme, int fd, struct gp_conn **conn_p);

/*
 * Destroys the connection but not its descriptor, which the caller then owns, to pass it to
 * gp_conn_adopt() in another process. GP_E_INVALID: bytes were read ahead, or a preamble or bulk is
 * partially read. GP_E_UNSUPPORTED: no GP_CONN_CAP_ADOPT. On failure nothing changes.
 */
GP_MUST_CHECK int gp_conn_release_fd(struct gp_conn *conn, int *fd_p);

/*
 * Receives exactly `size` bytes (at most GP_CONN_PREAMBLE_MAX) and nothing after them.
 * GP_E_TIMEOUT: not complete; the received part is stored, repeat the call with the same size.
 * GP_E_EOF: the peer closed before all bytes arrived.
 */
GP_MUST_CHECK int gp_conn_recv_preamble(struct gp_conn *conn, void *preamble, size_t size,
					int timeout_ms);

/* Sends the reply to a preamble, without framing, before this end's first message. */
GP_MUST_CHECK int gp_conn_send_preamble(struct gp_conn *conn, const void *preamble, size_t size);

/*
 * Sends a message; returns when its memory may be reused. A message arrives completely or, if the
 * connection dies, not at all. Both lists may be empty. GP_E_TOO_BIG: data over GP_CONN_MESSAGE_MAX
 * or bulk over GP_CONN_BULK_MAX; nothing was sent.
 */
GP_MUST_CHECK int gp_conn_send(struct gp_conn *conn, const struct iovec *data, int data_count,
			       const struct iovec *bulk, int bulk_count);

/*
 * Waits for a message. Bulk of the previous message that was not received is discarded first.
 * GP_E_EOF: the peer closed, and all its messages were received. -ECONNRESET: it closed within a
 * message. -EPROTO: malformed bytes. -ETIMEDOUT: a message began but stalled
 * (gp_conn_set_stall_timeout()). The wait for the first byte has no limit unless
 * gp_conn_set_idle_timeout() sets one: then GP_E_TIMEOUT, and the next call continues to wait.
 */
GP_MUST_CHECK int gp_conn_recv(struct gp_conn *conn, struct gp_message *message);

/*
 * Receives the next `size` bytes of the last message's bulk; may be called repeatedly for parts.
 * dst NULL discards them. The message's data stays valid. GP_E_INVALID: fewer bytes are left;
 * nothing was received. -ETIMEDOUT: stalled.
 */
GP_MUST_CHECK int gp_conn_recv_bulk(struct gp_conn *conn, void *dst, size_t size);

/*
 * For the receiving thread. Returns 1 if gp_conn_recv() would not wait (bytes, end or error), 0
 * after timeout_ms (< 0: no limit), or a negative errno.
 */
GP_MUST_CHECK int gp_conn_wait(struct gp_conn *conn, int timeout_ms);

/* Whether there are bytes for which gp_conn_fd() may not become readable: read ahead, or arrived
 * while another thread was reading. Call while no thread receives. */
bool gp_conn_pending(const struct gp_conn *conn);

/*
 * For the receiving thread: sets how long a receive polls for bytes before it sleeps; 0, the
 * default, sleeps at once. With 20 microseconds or more it stops polling as soon as another thread
 * needs the processor.
 */
void gp_conn_set_spin(struct gp_conn *conn, unsigned int usec);

/*
 * For the receiving thread: a message that has begun fails when no byte has arrived for this many
 * milliseconds; 0: never.
 */
void gp_conn_set_stall_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: sets a callback that the receiving thread calls instead of failing each
 * time that no byte of a message has arrived for the stall timeout. silent_ms: time without a byte.
 * If it returns false, the receive fails.
 */
void gp_conn_set_stall_callback(struct gp_conn *conn,
				bool (*stalled)(void *arg, unsigned int silent_ms), void *arg);

/*
 * For the receiving thread: no receive waits longer than `ms` from now, even if bytes keep
 * arriving; an incomplete message then fails with -ETIMEDOUT. The stall timeout still applies.
 * Setting it again restarts the time; 0 removes it for later receives. Only while the connection
 * carries no bulk.
 */
void gp_conn_set_deadline(struct gp_conn *conn, unsigned int ms);

/*
 * For the receiving thread: gp_conn_recv() returns GP_E_TIMEOUT when no message has begun for this
 * many milliseconds; 0: never. Polling (gp_conn_set_spin()) comes first; a deadline takes
 * precedence.
 */
void gp_conn_set_idle_timeout(struct gp_conn *conn, unsigned int ms);

/* From any thread: limits the data of received messages; a larger message ends the connection. At
 * most GP_CONN_MESSAGE_MAX, the default. */
void gp_conn_set_message_max(struct gp_conn *conn, size_t size);

/*
 * Before the first message: sets the time for which the peer's machine may acknowledge nothing
 * while the connection is idle; receiving then fails with -ETIMEDOUT. 0 and the default:
 * GP_CONN_TIMEOUT_MS. No effect on connections that do not cross a network.
 */
void gp_conn_set_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Returns for how many milliseconds the peer's machine has not acknowledged sent data; 0: all is
 * acknowledged, or the backend detects silence itself. Called from one thread, about once a second.
 */
unsigned int gp_conn_get_unacknowledged_ms(struct gp_conn *conn);

/* After a wait of `ms` milliseconds failed: whether the peer's machine acknowledged nothing for
 * most of it, so that the network or the machine is at fault and not the peer process. */
bool gp_conn_is_silent(const struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: like gp_conn_set_timeout(), and a send fails with -ETIMEDOUT, which
 * ends the connection, when the peer has read no byte or its machine has acknowledged nothing for
 * this many milliseconds. 0, the default: no limit.
 */
void gp_conn_set_send_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: sends never wait. A message that the system does not accept at once
 * fails with -EAGAIN and ends the connection. Requests a send buffer of `size` bytes and returns
 * its actual size, which the administrator's limit (net.core.wmem_max) may reduce.
 */
size_t gp_conn_set_nonblocking_send(struct gp_conn *conn, size_t size);

/*
 * From any thread: wakes all threads that wait in the connection; at this end all calls then return
 * -ESHUTDOWN. The peer still receives messages that were sent completely, then GP_E_EOF.
 */
void gp_conn_shutdown(struct gp_conn *conn);

unsigned int gp_conn_caps(const struct gp_conn *conn); /* bits of enum gp_conn_cap */
/* Returns a descriptor that becomes readable with the next message, or -1 without GP_CONN_CAP_FD or
 * if no descriptor is left. For the receiving thread, to be called before each poll, because the
 * backend may have to arm the descriptor. It also reports while other threads receive, until
 * gp_conn_fd_unwatch() ends the polling. */
int gp_conn_fd(const struct gp_conn *conn);
void gp_conn_fd_unwatch(struct gp_conn *conn);
/* Whether the peer has closed its end, regardless of unread bytes. False where only reading detects
 * it (RDMA). After gp_conn_shutdown() only with GP_CONN_CAP_PASS_FD. */
bool gp_conn_peer_closed(const struct gp_conn *conn);
const char *gp_conn_peer(const struct gp_conn *conn);  /* for logs: "tcp://10.1.2.3:4711" */
const char *gp_conn_error(const struct gp_conn *conn); /* why the connection is dead, or "" */
/* Formats the peer's numeric address, which identifies one of several addresses of its host name.
 * Returns false, writing nothing, if it has none or it does not fit. */
bool gp_conn_peer_address(const struct gp_conn *conn, char *text, size_t size);

/*
 * Returns the user who owns the peer's socket, for access control of local clients.
 * GP_E_UNSUPPORTED: the peer is on another machine or gone, or the kernel does not provide the
 * owner; no access must be granted then.
 */
GP_MUST_CHECK int gp_conn_peer_uid(const struct gp_conn *conn, uid_t *uid_p);

/*
 * Sends a descriptor to the peer, from any thread of the accepting end; it stays open in the
 * caller. It arrives before all messages that are sent later. GP_E_UNSUPPORTED: no
 * GP_CONN_CAP_PASS_FD, or this end has connected; -EPIPE, -ETIMEDOUT: the peer is gone, or does not
 * read.
 */
GP_MUST_CHECK int gp_conn_pass_fd(struct gp_conn *conn, int fd);
/* For the receiving thread: returns the oldest received descriptor, owned by the caller and
 * close-on-exec. -ENOENT: there is none. At most eight are queued. */
GP_MUST_CHECK int gp_conn_recv_fd(struct gp_conn *conn);

/*
 * Returns the name in the peer's verified client certificate: its common name, otherwise its first
 * DNS name. NULL: no certificate was shown, the peer is a daemon, or the connection is unencrypted.
 * Valid while the connection exists.
 */
const char *gp_conn_get_certificate_name(const struct gp_conn *conn);
/* Returns the end of the validity of the certificate and its chain, in seconds since 1970;
 * INT64_MAX without one. */
int64_t gp_conn_get_certificate_not_after(const struct gp_conn *conn);
/* Returns the certificate's serial number in hexadecimal; NULL: no certificate was shown. */
const char *gp_conn_get_certificate_serial(const struct gp_conn *conn);

/* For the layer above: marks the connection as dead because of the peer's bytes; `text` is the
 * reason. Returns r. */
int gp_conn_fail(struct gp_conn *conn, int r, const char *text, ...) GP_PRINTF(3, 4);

/*
 * Register memory that stays mapped until it is unregistered: connections with
 * GP_CONN_CAP_REMOTE_MEM transfer bulk to and from it without copies. A range that overlaps a
 * registered one is ignored. It must not be in use by a send or receive when it is unregistered.
 * From any thread; no cost if there are no such connections.
 */
void gp_memory_register(void *base, size_t size);
void gp_memory_unregister(void *base);

/*
 * The same for memory that this CPU may not be able to read, such as a GPU's. It is registered at
 * once with the connection's RDMA device by its dma-buf (which begins at the range's start and
 * stays the caller's), or by its address if dma_buf is -1; for use by this end only. Returns 0;
 * GP_E_UNSUPPORTED: no GP_CONN_CAP_REMOTE_MEM, or the library has no dma-buf support; -EEXIST:
 * overlaps a registered range; or the device's error.
 */
GP_MUST_CHECK int gp_conn_register_range(struct gp_conn *conn, void *base, size_t size,
					 int dma_buf);

/*
 * Whether bulk of this size moves between the range and the peer without this CPU: the range is
 * within one registered with gp_conn_register_range(), and is not too short. It must then be the
 * only part of its message's bulk, or be received in one piece, and must stay registered meanwhile.
 */
bool gp_conn_has_registered(struct gp_conn *conn, const void *base, size_t size);

/* Returns an identifier of the connection's RDMA device: connections of one device share
 * registrations. NULL: no GP_CONN_CAP_REMOTE_MEM. */
const void *gp_conn_get_device(const struct gp_conn *conn);

/* In a forked child: closes the descriptors that keep the parent's connection open, and nothing
 * else. */
void gp_conn_abandon(struct gp_conn *conn);

/* Accepts NULL. */
void gp_conn_destroy(struct gp_conn *conn);

/* After gp_conn_shutdown(), when the peer has had time to read: gp_conn_destroy() then clears
 * shared memory completely, including messages that the peer has not read. */
void gp_conn_discard(struct gp_conn *conn);
/* Before the process ends: clears the memory of all connections that share memory. */
void gp_shm_discard_all(void);

#endif /* GP_TRANSPORT_H */
