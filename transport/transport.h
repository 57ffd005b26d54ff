/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transport: moves whole messages between two processes and knows nothing of what they say.
 *
 * Who creates a connection or listener owns it and destroys it, when no thread is inside it.
 * One thread may send while another receives; two senders, or two receivers, take turns under
 * a lock of the caller's.  Functions return 0, a negative errno when the connection is dead
 * (every later call says the same; gp_conn_error() says it in words), or a positive GP_E_*
 * that is named here.  Callers ask for capabilities, never for a scheme.
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

/* The small part of a message. */
#define GP_CONN_MESSAGE_MAX ((size_t)256 << 10)
/* The tail that the receiver drains to where it wants. */
#define GP_CONN_BULK_MAX ((size_t)UINT32_MAX)
/* Raw bytes before the first message. */
#define GP_CONN_PREAMBLE_MAX ((size_t)256)
/* For how long a peer may be silent where nothing else is set. */
#define GP_CONN_TIMEOUT_MS 30000

struct gp_conn;
struct gp_listener;

enum gp_conn_cap {
	GP_CONN_CAP_FD = 1 << 0,         /* gp_conn_fd() can be polled for reading */
	GP_CONN_CAP_ADOPT = 1 << 1,      /* the descriptor can move to another process */
	GP_CONN_CAP_ENCRYPTED = 1 << 2,  /* nobody on the way can read or change it */
	GP_CONN_CAP_LOCAL = 1 << 3,      /* the peer is on this machine */
	GP_CONN_CAP_REMOTE_MEM = 1 << 4, /* bulk can go from memory to memory */
	GP_CONN_CAP_PASS_FD = 1 << 5,    /* the accepting end can pass descriptors */
};

struct gp_message {
	const void *data; /* aligned to 8; valid until the next gp_conn_recv() */
	size_t size;      /* at most GP_CONN_MESSAGE_MAX, may be 0 */
	size_t bulk_size; /* waiting to be taken with gp_conn_recv_bulk() */
};

/*
 * Tries every address that the host has.  timeout_ms < 0 waits as long as the system does;
 * looking up a host name is not included in it.  The preamble, if any, goes out first, in clear,
 * on every backend.  A negative errno says why there is no connection, `error` says it in words.
 */
GP_MUST_CHECK int gp_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
			     int timeout_ms, struct gp_conn **conn_p, char *error,
			     size_t error_size);

/*
 * A further connection to the very address of this one, without waiting for it: *fd_p is the
 * caller's until gp_connect_finish(), which owns it in any case.  That one waits, and sends
 * nothing; -ETIMEDOUT: it is not connected within timeout_ms.  GP_E_UNSUPPORTED: connecting takes
 * no time there, or more than a socket.
 */
GP_MUST_CHECK int gp_connect_start(const struct gp_conn *conn, int *fd_p);
GP_MUST_CHECK int gp_connect_finish(const struct gp_conn *conn, int fd, int timeout_ms,
				    struct gp_conn **conn_p);

/* First, by a process that will become this user: it may own the folder of a local socket, and
 * those above, as the user that the process is, and root, may anyway. */
void gp_listen_set_owner(uid_t uid);

/* Port 0 takes any free one, which gp_listener_url() tells; gp_listen_any_port() always does, and
 * its text names the URL as it is. */
GP_MUST_CHECK int gp_listen_any_port(const struct gp_url *url, struct gp_listener **listener_p,
				     char *error, size_t error_size);
GP_MUST_CHECK int gp_listen(const struct gp_url *url, struct gp_listener **listener_p, char *error,
			    size_t error_size);

/*
 * GP_E_TIMEOUT: nobody came within timeout_ms (0 looks only, < 0 waits for ever).
 * GP_E_RESOURCE: no descriptor or memory for another connection at the moment.
 */
GP_MUST_CHECK int gp_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);

/*
 * Accepts a connection as a descriptor, before anything is allocated for it; gp_conn_adopt() with
 * the listener's scheme makes a connection of it. Listeners on stream sockets only. Never waits.
 * peer: what gp_conn_peer() will return.
 * GP_E_TIMEOUT: no connection is there. GP_E_EOF: the peer of this connection has closed it without
 * sending anything. GP_E_RESOURCE: as above.
 */
GP_MUST_CHECK int gp_listener_accept_fd(struct gp_listener *listener, int *fd_p,
					char peer[GP_URL_TEXT_MAX]);

/*
 * Where a preamble is part of connecting (rdma), gp_accept() asks whether it is welcome before the
 * connection costs anything; who is not is refused.  Elsewhere nobody is asked.  peer: as
 * gp_conn_peer() would say it.
 */
void gp_listener_set_admit(struct gp_listener *listener,
			   bool (*admit)(void *arg, const char *peer, const void *preamble,
					 size_t size),
			   void *arg);

/* Readable when gp_accept() would not wait. */
int gp_listener_fd(const struct gp_listener *listener);
const struct gp_url *gp_listener_url(const struct gp_listener *listener);
void gp_listener_destroy(struct gp_listener *listener);

/*
 * A connection on a connected descriptor that this process was given.  It owns the descriptor
 * on success only.  "shm": a local socket whose other end connects to shm:, too; this end makes the
 * memory.  GP_E_UNSUPPORTED without GP_CONN_CAP_ADOPT, GP_E_INVALID: unknown scheme.
 */
GP_MUST_CHECK int gp_conn_adopt(const char *scheme, int fd, struct gp_conn **conn_p);

/*
 * Ends the connection here but not its descriptor, which the caller now owns: for gp_conn_adopt()
 * elsewhere.  GP_E_INVALID: bytes were read ahead, or a preamble or bulk is half read;
 * GP_E_UNSUPPORTED: no GP_CONN_CAP_ADOPT.  In both cases nothing has happened.
 */
GP_MUST_CHECK int gp_conn_release_fd(struct gp_conn *conn, int *fd_p);

/* Two connected ends in this process, of the loop backend. */
GP_MUST_CHECK int gp_loop_create_pair(struct gp_conn **a_p, struct gp_conn **b_p);

/*
 * Takes exactly `size` (at most GP_CONN_PREAMBLE_MAX) bytes and nothing behind them.
 * GP_E_TIMEOUT: they are not all here yet; what came is kept, call again with the same size.
 * GP_E_EOF: the peer closed before all of them came.
 */
GP_MUST_CHECK int gp_conn_recv_preamble(struct gp_conn *conn, void *preamble, size_t size,
					int timeout_ms);

/* The answer to a preamble, also without framing, before this end's first message. */
GP_MUST_CHECK int gp_conn_send_preamble(struct gp_conn *conn, const void *preamble, size_t size);

/*
 * Blocks until the message is on its way and the memory may be reused; no part of it arrives
 * without the rest unless the connection dies.  Both lists may be empty.
 * GP_E_TOO_BIG: data over GP_CONN_MESSAGE_MAX or bulk over GP_CONN_BULK_MAX; nothing was sent.
 */
GP_MUST_CHECK int gp_conn_send(struct gp_conn *conn, const struct iovec *data, int data_count,
			       const struct iovec *bulk, int bulk_count);

/*
 * Blocks until a message is there.  What is left of the last one's bulk is thrown away first.
 * GP_E_EOF: the peer closed, and every message it had sent was received.  A close inside a
 * message is -ECONNRESET, bytes that are no message are -EPROTO, and -ETIMEDOUT is a message
 * that began and did not go on (gp_conn_set_stall_timeout()); for its first byte the wait has no
 * end, unless gp_conn_set_idle_timeout() says so: then GP_E_TIMEOUT, and the next call goes on
 * waiting.
 */
GP_MUST_CHECK int gp_conn_recv(struct gp_conn *conn, struct gp_message *message);

/*
 * Blocks for the next `size` bytes of the last message's bulk, in as many pieces as the caller
 * likes; dst NULL throws them away.  The message's data stays valid.
 * GP_E_INVALID: there are fewer left; nothing was taken.  -ETIMEDOUT: none came for too long.
 */
GP_MUST_CHECK int gp_conn_recv_bulk(struct gp_conn *conn, void *dst, size_t size);

/*
 * For the receiving thread: 1 when gp_conn_recv() would find something at once (bytes, the end
 * or an error), 0 after timeout_ms without (< 0 waits for ever), or a negative errno.
 */
GP_MUST_CHECK int gp_conn_wait(struct gp_conn *conn, int timeout_ms);

/* There are bytes for which gp_conn_fd() need not become readable: read ahead, or come while
 * somebody else read.  When no thread receives. */
bool gp_conn_pending(const struct gp_conn *conn);

/*
 * For the receiving thread: a receive looks for this long for bytes before it sleeps; 0, the
 * default, sleeps at once.  From 20 microseconds on it sleeps as soon as another thread wants the
 * processor.
 */
void gp_conn_set_spin(struct gp_conn *conn, unsigned int usec);

/*
 * For the receiving thread: a message that has begun is given up when no byte of it has come for
 * so many milliseconds; 0: never.
 */
void gp_conn_set_stall_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: the message is not given up, but stalled() is called each time that no
 * byte of it has come for the time of gp_conn_set_stall_timeout(), by the thread that receives;
 * silent_ms: for how long none has come.  False: the message is given up.
 */
void gp_conn_set_stall_callback(struct gp_conn *conn,
				bool (*stalled)(void *arg, unsigned int silent_ms), void *arg);

/*
 * For the receiving thread: no receive waits beyond so many milliseconds from now, however often a
 * byte comes; a message that is not whole by then is -ETIMEDOUT.  The time of
 * gp_conn_set_stall_timeout() goes on to count.  Given anew it counts from then; 0 lifts it, and a
 * receive that begins later waits as if there had never been one.  For connections that carry no
 * bulk meanwhile.
 */
void gp_conn_set_deadline(struct gp_conn *conn, unsigned int ms);

/*
 * For the receiving thread: gp_conn_recv() comes back when no message has begun for so many
 * milliseconds, so that its thread can look around; 0: never.  Polling (gp_conn_set_spin()) comes
 * first, and a deadline before it.
 */
void gp_conn_set_idle_timeout(struct gp_conn *conn, unsigned int ms);

/* From any thread: messages with more data than this, and at most GP_CONN_MESSAGE_MAX, which is the
 * default, end the connection. */
void gp_conn_set_message_max(struct gp_conn *conn, size_t size);

/*
 * Before the first message: the time for which the peer's machine may acknowledge nothing while the
 * connection is idle; then receiving fails with -ETIMEDOUT.  It is GP_CONN_TIMEOUT_MS by default
 * and with 0.  Connections that do not cross a network have no such limit.
 */
void gp_conn_set_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * For how many milliseconds the peer's machine has not acknowledged what this end has sent; 0: it
 * has acknowledged all, or the backend notices silence itself.  From one thread, every second or
 * so.
 */
unsigned int gp_conn_get_unacknowledged_ms(struct gp_conn *conn);

/* When a wait of so many milliseconds has failed: whether the peer's machine has acknowledged
 * nothing for most of it, so that the network or the machine is at fault, not the peer. */
bool gp_conn_is_silent(const struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: gp_conn_set_timeout(); and a send fails with -ETIMEDOUT, and the
 * connection is dead, when the peer has taken no byte for so many milliseconds, or its machine has
 * not acknowledged for as long; 0, the default: it waits without limit.
 */
void gp_conn_set_send_timeout(struct gp_conn *conn, unsigned int ms);

/*
 * Before the first message: sending never waits from now on. A message that the system does not
 * accept at once fails with -EAGAIN, and the connection is dead. The system is asked to accept
 * `size` bytes that the peer has not read. Returns the number of bytes that it will accept, which
 * the administrator's limit (net.core.wmem_max) may make smaller.
 */
size_t gp_conn_set_nonblocking_send(struct gp_conn *conn, size_t size);

/*
 * From any thread: wakes whoever blocks in the connection; here all calls return -ESHUTDOWN from
 * now on.  The peer still gets what was sent completely, then GP_E_EOF.
 */
void gp_conn_shutdown(struct gp_conn *conn);

unsigned int gp_conn_caps(const struct gp_conn *conn); /* of enum gp_conn_cap */
/* -1 without GP_CONN_CAP_FD, or if there is none left.  For the receiving thread, before each poll:
 * it may take an effort to make the descriptor tell of the next message.  It goes on to tell while
 * others receive, until gp_conn_fd_unwatch(): who polled does not any more. */
int gp_conn_fd(const struct gp_conn *conn);
void gp_conn_fd_unwatch(struct gp_conn *conn);
/* Whether the peer has closed its end, whatever of it is still unread; false as well where only
 * reading tells (RDMA, loop).  After gp_conn_shutdown() only with GP_CONN_CAP_PASS_FD. */
bool gp_conn_peer_closed(const struct gp_conn *conn);
const char *gp_conn_peer(const struct gp_conn *conn);  /* for logs: "tcp://10.1.2.3:4711" */
const char *gp_conn_error(const struct gp_conn *conn); /* why it is dead, or "" */
/* The peer's address in digits, of several that its name may have; false, and nothing is written,
 * where it has none or the text does not fit. */
bool gp_conn_peer_address(const struct gp_conn *conn, char *text, size_t size);

/*
 * The user whose socket the peer is, for access to a daemon on the same machine.
 * GP_E_UNSUPPORTED: on another machine, gone already, or the kernel does not say: trust nobody.
 */
GP_MUST_CHECK int gp_conn_peer_uid(const struct gp_conn *conn, uid_t *uid_p);

/*
 * A descriptor for the peer, from any thread of the accepting end; it stays the caller's.  It comes
 * before every message that is sent later.  GP_E_UNSUPPORTED: without GP_CONN_CAP_PASS_FD, or this
 * end has connected; -EPIPE, -ETIMEDOUT: the peer is gone, or takes nothing.
 */
GP_MUST_CHECK int gp_conn_pass_fd(struct gp_conn *conn, int fd);
/* For the receiving thread: the oldest one that was passed and not taken; the caller's, closed on
 * exec.  -ENOENT: there is none; up to eight are kept. */
GP_MUST_CHECK int gp_conn_recv_fd(struct gp_conn *conn);

/*
 * The name in the client certificate that the peer has shown, verified: its common name, else its
 * first DNS name.  NULL: it has shown none, or is a daemon, or the connection is in clear.
 */
const char *gp_conn_get_certificate_name(const struct gp_conn *conn);
/* Until when it and those that it was signed by hold, in seconds since 1970; INT64_MAX without one.
 */
int64_t gp_conn_get_certificate_not_after(const struct gp_conn *conn);
/* Its serial number in hexadecimal digits; NULL: no certificate was shown, of whatever name. */
const char *gp_conn_get_certificate_serial(const struct gp_conn *conn);

/* For the layer above: `text` is why the peer's bytes end this connection.  Returns `r`. */
int gp_conn_fail(struct gp_conn *conn, int r, const char *text, ...) GP_PRINTF(3, 4);

/*
 * Memory that stays where it is until it is forgotten: connections with GP_CONN_CAP_REMOTE_MEM move
 * bulk to and from it without copies.  A range that overlaps a kept one is not kept.  It must not
 * be in a send or receive when it is forgotten.  From any thread; costs nothing where there are
 * none.
 */
void gp_memory_register(void *base, size_t size);
void gp_memory_unregister(void *base);

/*
 * The same for memory that this CPU need not be able to read, such as a GPU's: it is registered at
 * once, with the RDMA device of this connection, by its dma-buf (which begins where the range does,
 * and stays the caller's), or by its address if that is -1; for this end's use only.  0;
 * GP_E_UNSUPPORTED: the connection moves no bulk to and from memory, or the library knows no
 * dma-bufs; -EEXIST: it overlaps a kept range; or why the device does not take it.
 */
GP_MUST_CHECK int gp_conn_register_range(struct gp_conn *conn, void *base, size_t size,
					 int dma_buf);

/*
 * Whether bulk of this size moves between the range and the peer without this CPU: all of it is in
 * one range that is kept so, and it is not too short.  It is then sent as the only part of its
 * message's bulk, or received in one piece.  The range must not be forgotten meanwhile.
 */
bool gp_conn_has_registered(struct gp_conn *conn, const void *base, size_t size);

/* Connections of one device reach the same memory.  NULL: none moves bulk to and from memory. */
const void *gp_conn_get_device(const struct gp_conn *conn);

/* In the child of a fork: closes what keeps the parent's connection open, and nothing else. */
void gp_conn_abandon(struct gp_conn *conn);

/* Accepts NULL. */
void gp_conn_destroy(struct gp_conn *conn);

/* The peer has had time to read: where both ends share memory, gp_conn_destroy() leaves nothing in
 * it that the peer has not read.  After gp_conn_shutdown(). */
void gp_conn_discard(struct gp_conn *conn);
/* Before the process ends: leaves nothing in the memory of all connections that share some. */
void gp_shm_discard_all(void);

#endif /* GP_TRANSPORT_H */
