/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message transport between two processes, independent of the messages' content, over tcp, unix
 * sockets, shared memory (shm), tls or rdma. A message has data (small, received into a buffer of
 * the connection) and bulk (large, received directly into memory of the caller). Before the first
 * message, each end may send one preamble: a short, unframed and unencrypted greeting.
 *
 * Ownership: the creator of a connection or listener destroys it, when no thread is inside a call
 * on it. Paths, texts and buffers that are passed to a function may be freed when it returns;
 * callback arguments must stay valid as long as the connection or listener. Returned texts are
 * borrowed from the connection and valid until it is destroyed.
 * Threads: one thread may send while another receives. Several senders, or several receivers, need
 * a lock of the caller. Functions wait only where their comment states it.
 * Errors: functions that return int return 0 on success; a positive GP_E_* code named at the
 * function, after which the connection stays usable unless noted; or a negative errno. Unless
 * noted, the connection is then dead: all later calls return the same, gp_conn_error() explains it,
 * and it must still be destroyed. Output parameters are undefined after an error, except error
 * texts.
 * Units: bytes and milliseconds, unless noted.
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

/* Maximum data of a message, in bytes. */
#define GP_CONN_MESSAGE_MAX ((size_t)256 << 10)
/* Maximum bulk of a message, in bytes. */
#define GP_CONN_BULK_MAX ((size_t)UINT32_MAX)
/* Maximum size of a preamble, in bytes. */
#define GP_CONN_PREAMBLE_MAX ((size_t)256)
/* Default time for which a peer may be silent. */
#define GP_CONN_TIMEOUT_MS 30000

/* Connection: one end of a message channel to a peer process. */
struct gp_conn;
/* Listener: accepts connections on one address. */
struct gp_listener;

/* Capabilities of a connection, as bits of gp_conn_caps(). */
enum gp_conn_cap {
	GP_CONN_CAP_FD = 1 << 0,        /* gp_conn_fd() can be polled for reading */
	GP_CONN_CAP_ADOPT = 1 << 1,     /* the descriptor can be passed to another process */
	GP_CONN_CAP_ENCRYPTED = 1 << 2, /* encrypted and authenticated */
	GP_CONN_CAP_LOCAL = 1 << 3,     /* the peer is on this machine */
	/* Bulk can be transferred directly between memories (RDMA). */
	GP_CONN_CAP_REMOTE_MEM = 1 << 4,
	GP_CONN_CAP_PASS_FD = 1 << 5, /* the accepting end can send file descriptors */
};

/* A received message; filled by gp_conn_recv(). */
struct gp_message {
	/* aligned to 8; valid until the next gp_conn_recv() or gp_conn_destroy() */
	const void *data;
	size_t size;      /* at most GP_CONN_MESSAGE_MAX, may be 0 */
	size_t bulk_size; /* to be received with gp_conn_recv_bulk() */
};

/*
 * Connects to a daemon, trying all addresses of the host, and waits until a connection is
 * established. timeout_ms < 0: the system's limit; resolving the host name is not included in the
 * timeout. If preamble_size is not 0, the preamble is sent first, unencrypted, on every backend.
 * Returns 0, and the caller owns *conn_p. On failure returns a negative errno, or GP_E_INVALID for
 * an unknown scheme or an oversized preamble; `error` explains the failure, and nothing is left to
 * destroy.
 */
GP_MUST_CHECK int gp_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
			     int timeout_ms, struct gp_conn **conn_p, char *error,
			     size_t error_size);

/*
 * Starts a further connection to the same address as `conn`, without waiting. Returns 0, and *fd_p
 * is a descriptor that gp_connect_finish() must be called with; a caller that gives up closes it
 * instead. GP_E_UNSUPPORTED: connecting takes no time on this backend, or needs more than a socket.
 * A negative errno does not end `conn`.
 */
GP_MUST_CHECK int gp_connect_start(const struct gp_conn *conn, int *fd_p);
/* Waits at most timeout_ms (< 0: no limit) until the connection of gp_connect_start() is
 * established, and sends nothing. conn: the same connection; called only after gp_connect_start()
 * has returned 0. Owns fd in any case: after a failure it is closed. Returns 0, -ETIMEDOUT if not
 * connected within timeout_ms, or another negative errno. */
GP_MUST_CHECK int gp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms,
				    struct gp_conn **conn_p);

/* Allows a further owner of the directories that lead to a local socket, besides root and the
 * process's current user. Called before listening by a process that will later run as user
 * `uid`. */
void gp_listen_set_owner(uid_t uid);

/* Listens on the address with any free port; the URL's port is ignored. On failure returns a
 * negative errno or GP_E_INVALID (unknown scheme), and `error` explains it, with the URL unchanged.
 * The caller destroys the listener with gp_listener_destroy(). */
GP_MUST_CHECK int gp_listen_any_port(const struct gp_url *url, struct gp_listener **listener_p,
				     char *error, size_t error_size);
/* Like gp_listen_any_port(), but uses the URL's port. With port 0 any free port is used, which
 * gp_listener_url() returns. */
GP_MUST_CHECK int gp_listen(const struct gp_url *url, struct gp_listener **listener_p, char *error,
			    size_t error_size);

/*
 * Waits until a connection arrives and accepts it. The caller owns *conn_p. GP_E_TIMEOUT: no
 * connection arrived within timeout_ms (0: does not wait, < 0: waits without limit). GP_E_RESOURCE:
 * no descriptor or memory at the moment; retry later. A negative errno: the listener cannot be used
 * any more.
 */
GP_MUST_CHECK int gp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);

/*
 * Accepts a connection as a descriptor, before anything is allocated for it; gp_conn_adopt() with
 * the listener's scheme turns it into a connection. Only for listeners on stream sockets. Never
 * waits. The caller owns *fd_p. peer: as gp_conn_peer() will return it.
 * GP_E_TIMEOUT: no connection is pending. GP_E_EOF: the peer has closed the connection without
 * sending anything; the next call may succeed. GP_E_RESOURCE: as gp_accept(). GP_E_UNSUPPORTED: the
 * backend does not accept stream sockets.
 */
GP_MUST_CHECK int gp_listener_accept_fd(struct gp_listener *listener, int *fd_p,
					char peer[GP_URL_TEXT_MAX]);

/*
 * Sets a callback that decides on a new connection by its preamble, before resources are allocated
 * for it; gp_accept() rejects the connection if the callback returns false. gp_accept() calls it in
 * its own thread, and only where the preamble is part of connecting (rdma). peer: as
 * gp_conn_peer(). The preamble is valid during the callback. arg must stay valid until the listener
 * is destroyed.
 */
void gp_listener_set_admit(struct gp_listener *listener,
			   bool (*admit)(void *arg, const char *peer, const void *preamble,
					 size_t size),
			   void *arg);

/* Returns a descriptor that is readable when gp_accept() would not wait. It stays the
 * listener's. */
int gp_listener_fd(const struct gp_listener *listener);
/* Returns the URL that the listener listens on, with its actual port; borrowed from the
 * listener. */
const struct gp_url *gp_listener_url(const struct gp_listener *listener);
/* Closes the listener and frees it. Accepts NULL. */
void gp_listener_destroy(struct gp_listener *listener);

/*
 * Creates a connection on a connected descriptor that was passed to this process. On success the
 * connection owns the descriptor; after a failure it stays the caller's. Scheme "shm": fd is a
 * local socket whose other end connects to shm: as well; this end creates the memory. Returns 0;
 * GP_E_UNSUPPORTED: no GP_CONN_CAP_ADOPT; GP_E_INVALID: unknown scheme, or not a connected stream
 * socket; or a negative errno.
 */
GP_MUST_CHECK int gp_conn_adopt(const char *scheme, int fd, struct gp_conn **conn_p);

/*
 * Destroys the connection but not its descriptor, which the caller then owns, to pass it to
 * gp_conn_adopt() in another process. GP_E_INVALID: bytes were read ahead, a preamble or bulk is
 * partially read, or the connection is dead. GP_E_UNSUPPORTED: no GP_CONN_CAP_ADOPT, or encrypted.
 * On failure the connection is unchanged.
 */
GP_MUST_CHECK int gp_conn_release_fd(struct gp_conn *conn, int *fd_p);

/*
 * Waits until exactly `size` bytes (at most GP_CONN_PREAMBLE_MAX) of the peer's preamble have
 * arrived, and receives nothing after them. Returns 0. GP_E_TIMEOUT: incomplete after timeout_ms (<
 * 0: no limit); the received part is stored, repeat the call with the same size. GP_E_EOF: the peer
 * closed before all bytes arrived; nothing more can be received.
 */
GP_MUST_CHECK int gp_conn_recv_preamble(struct gp_conn *conn, void *preamble, size_t size,
					int timeout_ms);

/* Sends the reply to a preamble, without framing, before this end's first message. Waits as
 * gp_conn_send(). Returns 0 or a negative errno. */
GP_MUST_CHECK int gp_conn_send_preamble(struct gp_conn *conn, const void *preamble, size_t size);

/*
 * Sends a message and returns 0 when its memory may be reused. Waits until the system has accepted
 * all bytes; gp_conn_set_send_timeout() limits the wait. A message arrives completely or, if the
 * connection dies, not at all. Both lists may be empty. GP_E_TOO_BIG: data over GP_CONN_MESSAGE_MAX
 * or bulk over GP_CONN_BULK_MAX; nothing was sent.
 */
GP_MUST_CHECK int gp_conn_send(struct gp_conn *conn, const struct iovec *data, int data_count,
			       const struct iovec *bulk, int bulk_count);

/*
 * Waits for a message. Bulk of the previous message that was not received is discarded first.
 * Returns 0 with *message filled.
 * GP_E_EOF: the peer closed, and all its messages were received; later receives return GP_E_EOF
 * too. -ECONNRESET: it closed within a message. -EPROTO: malformed bytes. -ETIMEDOUT: a message
 * began but stalled (gp_conn_set_stall_timeout()). The wait for the first byte has no limit unless
 * gp_conn_set_idle_timeout() sets one. GP_E_TIMEOUT: that limit has passed; the next call continues
 * to wait.
 */
GP_MUST_CHECK int gp_conn_recv(struct gp_conn *conn, struct gp_message *message);

/*
 * Waits for and receives the next `size` bytes of the last message's bulk; may be called repeatedly
 * for parts. dst NULL discards the bytes. The message's data stays valid. Returns 0. GP_E_INVALID:
 * fewer bytes are left; nothing was received. -ETIMEDOUT: stalled (gp_conn_set_stall_timeout()).
 * After a negative errno a part of dst may have been written.
 */
GP_MUST_CHECK int gp_conn_recv_bulk(struct gp_conn *conn, void *dst, size_t size);

/*
 * For the receiving thread: waits until gp_conn_recv() would not wait. Returns 1 when bytes, the
 * end or an error can be received, 0 after timeout_ms (< 0: no limit), or a negative errno.
 */
GP_MUST_CHECK int gp_conn_wait(struct gp_conn *conn, int timeout_ms);

/* Returns whether there are bytes for which gp_conn_fd() may not become readable, because they were
 * read ahead or arrived while another thread was reading. Must be called while no thread
 * receives. */
bool gp_conn_pending(const struct gp_conn *conn);

/*
 * For the receiving thread: sets for how many microseconds a receive polls for bytes before it
 * sleeps. 0, the default: it sleeps at once. After 20 microseconds it polls only while no other
 * thread needs the processor.
 */
void gp_conn_set_spin(struct gp_conn *conn, unsigned int usec);

/*
 * For the receiving thread: sets the stall timeout. A message that has begun fails with -ETIMEDOUT
 * when no byte of it has arrived for this many milliseconds. 0: never. Default: GP_CONN_TIMEOUT_MS.
 */
void gp_conn_set_stall_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: sets a callback that is called each time that no byte of a message has
 * arrived for the stall timeout, in the receiving thread. silent_ms: time without a byte. If it
 * returns true, the receive waits for another stall timeout; if false, the receive fails with
 * -ETIMEDOUT. arg must stay valid until the connection is destroyed.
 */
void gp_conn_set_stall_callback(struct gp_conn *conn,
				bool (*stalled)(void *arg, unsigned int silent_ms), void *arg);

/*
 * For the receiving thread: sets a deadline for receiving, `ms` milliseconds from now. No receive
 * waits longer, even if bytes keep arriving; an incomplete message then fails with -ETIMEDOUT. The
 * stall timeout still applies. Another call restarts the time; 0 removes the deadline for later
 * receives. Only while the connection carries no bulk.
 */
void gp_conn_set_deadline(struct gp_conn *conn, unsigned int ms);

/*
 * For the receiving thread: sets the time without a new message after which gp_conn_recv() returns
 * GP_E_TIMEOUT. 0, the default: never. The time begins after polling (gp_conn_set_spin()). While a
 * deadline is set, the idle timeout has no effect.
 */
void gp_conn_set_idle_timeout(struct gp_conn *conn, unsigned int ms);

/* Limits the data of received messages; a larger message ends the connection with -EPROTO. size: at
 * most GP_CONN_MESSAGE_MAX, the default; 0 sets the default. May be called by any thread. */
void gp_conn_set_message_max(struct gp_conn *conn, size_t size);

/*
 * Before the first message: sets the time for which the peer's machine may acknowledge nothing
 * while the connection is idle; receiving then fails with -ETIMEDOUT. ms 0 sets the default,
 * GP_CONN_TIMEOUT_MS. No effect on connections that do not cross a network.
 */
void gp_conn_set_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Returns for how many milliseconds the peer's machine has not acknowledged sent data, despite
 * retransmission. 0: all is acknowledged, nothing was retransmitted yet, or the backend detects
 * silence itself. Called by a single thread, about once a second.
 */
unsigned int gp_conn_get_unacknowledged_ms(struct gp_conn *conn);

/* After a wait of `ms` milliseconds has failed: returns whether the peer's machine acknowledged
 * nothing for most of that time, so that the network or the machine is at fault and not the peer
 * process. False where this cannot be determined. */
bool gp_conn_is_silent(const struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: limits how long a send waits, and calls gp_conn_set_timeout() with the
 * same time. A send fails with -ETIMEDOUT, which ends the connection, when the peer has read no
 * byte or its machine has acknowledged nothing for `ms` milliseconds. 0, the default: no limit.
 */
void gp_conn_set_send_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: makes sends never wait. A message that the system does not accept at
 * once fails with -EAGAIN and ends the connection. Requests a send buffer of `size` bytes and
 * returns its actual size, which the administrator's limit (net.core.wmem_max) may reduce; 0:
 * unknown.
 */
size_t gp_conn_set_nonblocking_send(struct gp_conn *conn, size_t size);

/*
 * Wakes all threads that wait in the connection. At this end all sends and receives then return
 * -ESHUTDOWN, unless they had failed before. The peer still receives messages that were sent
 * completely, then GP_E_EOF. May be called by any thread; the connection must still be destroyed.
 */
void gp_conn_shutdown(struct gp_conn *conn);

unsigned int gp_conn_caps(const struct gp_conn *conn); /* bits of enum gp_conn_cap */
/* Returns a descriptor that becomes readable with the next message, or -1 without GP_CONN_CAP_FD or
 * if no descriptor is left. The descriptor stays the connection's. Must be called by the receiving
 * thread before each poll, because the backend may have to arm the descriptor. It also reports
 * while other threads receive, until gp_conn_fd_unwatch() ends the polling. */
int gp_conn_fd(const struct gp_conn *conn);
/* Ends the polling of gp_conn_fd()'s descriptor, which the caller then no longer polls. */
void gp_conn_fd_unwatch(struct gp_conn *conn);
/* Returns whether the peer has closed its end, regardless of unread bytes. False where only reading
 * detects this (RDMA). After gp_conn_shutdown() the result is valid only with
 * GP_CONN_CAP_PASS_FD. */
bool gp_conn_peer_closed(const struct gp_conn *conn);
/* Returns the URL of the peer for logs, such as "tcp://10.1.2.3:4711". */
const char *gp_conn_peer(const struct gp_conn *conn);
/* Returns why the connection is dead; "" if it is not. */
const char *gp_conn_error(const struct gp_conn *conn);
/* Writes the peer's numeric address, which identifies one of several addresses of its host name, to
 * text. Returns false, writing nothing, if the peer has no IP address or it does not fit in `size`
 * bytes. */
bool gp_conn_peer_address(const struct gp_conn *conn, char *text, size_t size);

/*
 * Stores the user who owns the peer's socket in *uid_p, for access control of local clients. May
 * take milliseconds. Returns 0. GP_E_UNSUPPORTED: the peer is on another machine or gone, or the
 * kernel does not provide the owner; no access must be granted then.
 */
GP_MUST_CHECK int gp_conn_peer_uid(const struct gp_conn *conn, uid_t *uid_p);

/*
 * Sends a descriptor to the peer. It stays open in the caller, which may close it on return, and
 * arrives before all messages that are sent later. Waits at most 2 s. May be called by any thread
 * of the accepting end. Returns 0. GP_E_UNSUPPORTED: no GP_CONN_CAP_PASS_FD, or this end has
 * connected. -EPIPE: the peer is gone. -ETIMEDOUT: the peer does not read. An error does not end
 * the connection.
 */
GP_MUST_CHECK int gp_conn_pass_fd(struct gp_conn *conn, int fd);
/* For the receiving thread: returns the oldest received descriptor, owned by the caller and
 * close-on-exec, or -ENOENT if there is none; the connection stays usable. Never waits. At most
 * eight are queued; further ones are closed when they arrive. */
GP_MUST_CHECK int gp_conn_recv_fd(struct gp_conn *conn);

/*
 * Returns the name in the peer's verified client certificate: its common name, otherwise its first
 * DNS name. NULL: no certificate was shown, the peer is a daemon, or the connection is unencrypted.
 */
const char *gp_conn_get_certificate_name(const struct gp_conn *conn);
/* Returns the end of the validity of the certificate and its chain, in seconds since 1970;
 * INT64_MAX if gp_conn_get_certificate_name() returns NULL. */
int64_t gp_conn_get_certificate_not_after(const struct gp_conn *conn);
/* Returns the certificate's serial number in hexadecimal; NULL: no certificate was shown. */
const char *gp_conn_get_certificate_serial(const struct gp_conn *conn);

/* Stores the reason why a user of the transport gives up the connection, for example because it has
 * received invalid bytes. text: printf() format of the reason (%m: that of r), stored for
 * gp_conn_error() unless the connection has an error already. Returns r, a negative errno. Ends
 * nothing: the caller sends and receives no more. May be called by any thread. */
int gp_conn_fail(struct gp_conn *conn, int r, const char *text, ...) GP_PRINTF(3, 4);

/*
 * Registers memory that stays mapped until it is unregistered: connections with
 * GP_CONN_CAP_REMOTE_MEM transfer bulk to and from it without copies. The call has no effect if the
 * range overlaps a registered one or memory is exhausted. The memory stays the caller's. May be
 * called by any thread; no cost if there are no such connections.
 */
void gp_memory_register(void *base, size_t size);
/* Unregisters the range that begins at base, of gp_memory_register() or gp_conn_register_range();
 * no effect if there is none. No send or receive may be using the range. */
void gp_memory_unregister(void *base);

/*
 * Registers memory that this CPU may not be able to read, such as a GPU's, until
 * gp_memory_unregister(). It is registered at once with the connection's RDMA device by its dma-buf
 * (which begins at the range's start and stays the caller's), or by its address if dma_buf is -1;
 * for use by this end only. Returns 0; GP_E_UNSUPPORTED: no GP_CONN_CAP_REMOTE_MEM, or the library
 * has no dma-buf support; -EEXIST: overlaps a registered range; or the device's error, which does
 * not end the connection.
 */
GP_MUST_CHECK int gp_conn_register_range(struct gp_conn *conn, void *base, size_t size,
					 int dma_buf);

/*
 * Returns whether bulk of this size moves between the range and the peer without this CPU: the
 * range is within one registered with gp_conn_register_range(), and is not too short. It must then
 * be the only part of its message's bulk, or be received in one piece, and must stay registered
 * meanwhile.
 */
bool gp_conn_has_registered(struct gp_conn *conn, const void *base, size_t size);

/* Returns an identifier of the connection's RDMA device, only for comparisons: connections of one
 * device share registrations. NULL: no GP_CONN_CAP_REMOTE_MEM. */
const void *gp_conn_get_device(const struct gp_conn *conn);

/* In a forked child: closes the descriptors that keep the parent's connection open, and frees
 * nothing. The child must not use the connection otherwise. */
void gp_conn_abandon(struct gp_conn *conn);

/* Closes and frees the connection. May wait up to two seconds for the last segments of an RDMA
 * connection. Accepts NULL. */
void gp_conn_destroy(struct gp_conn *conn);

/* After gp_conn_shutdown(), when the peer has had time to read: makes gp_conn_destroy() clear
 * shared memory completely, including messages that the peer has not read. No effect on connections
 * without shared memory. */
void gp_conn_discard(struct gp_conn *conn);
/* Before the process ends: clears the memory of all connections that share memory; they cannot be
 * used afterwards. */
void gp_shm_discard_all(void);

#endif /* GP_TRANSPORT_H */
