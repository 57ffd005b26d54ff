/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA backend; private to the files rdma*.c of this directory (protocol/wire.md, 9).
 *
 * A connection is a reliable connected queue pair. The byte stream is sent as segments, by send and
 * receive. A segment of type GP_RDMA_BYTES needs a credit, the peer's permission for one segment.
 * Bulk of at least GP_RDMA_DIRECT_MIN bytes is transferred directly between memories, in pieces.
 * The accepting end, the *server*, performs all RDMA reads and writes; the connecting end, the
 * *client*, sends address and key of its memory. A server therefore never gives a peer a key to its
 * memory.
 *
 * Ownership: a connection owns its queue pair, descriptors and buffers, freed by gp_rdma_destroy();
 * devices are shared and never closed.
 * Threads: members of struct gp_rdma_conn below `lock` are guarded by it. Functions with
 * GP_LOCKED() are called with the lock held. Of these, only gp_rdma_wait(),
 * gp_rdma_wait_spinning(), gp_rdma_wait_retired(), gp_rdma_wait_flushed() and
 * gp_rdma_send_control() wait; they release the lock meanwhile, so the state below it may differ
 * afterwards.
 * Errors: functions that return int return 0 or a negative errno. The connection's error text is
 * set if the errno is the value of `down`; it is not set by functions with a parameter `detail`, by
 * those without a connection, for -EAGAIN of the waiting functions, and for -ESHUTDOWN and -EPIPE
 * before the connection is down.
 * Units: bytes and milliseconds; deadlines by gp_now_ms(), -1: none.
 */
#ifndef GP_RDMA_H
#define GP_RDMA_H

#include "base/lock.h"
#include "transport/message_stream.h"
#include "transport/rdma/rdma_lib.h"

#include <pthread.h>

/* Maximum size of a segment, with its header. */
#define GP_RDMA_SEGMENT ((size_t)8 << 10)
/* Size of the header: type, returned credits, and number of bytes (protocol/wire.md, 9). */
#define GP_RDMA_SEGMENT_HEADER 8
/* Data segments that may be sent before the peer has consumed any. */
#define GP_RDMA_CREDITS 32
/* Further receive buffers for segments of the other types, which need no credit. */
#define GP_RDMA_CONTROL 24
/* Number of receive buffers. */
#define GP_RDMA_RX (GP_RDMA_CREDITS + GP_RDMA_CONTROL)
/* Number of buffers for outgoing data segments. */
#define GP_RDMA_TX 32
/* Maximum number of posted work requests of the send queue. */
#define GP_RDMA_SEND_QUEUE 128
/* Size of the buffers for segments of the other types, one for each work request of the send queue.
 * They are in tx memory after those for data segments. */
#define GP_RDMA_CONTROL_SIZE 32
/* Minimum size of bulk that is transferred directly. */
#define GP_RDMA_DIRECT_MIN ((size_t)32 << 10)
/* Size of a piece of bulk that is copied through staging memory. */
#define GP_RDMA_STAGE_PIECE ((size_t)256 << 10)
/* Maximum size of a piece of bulk that is transferred directly. */
#define GP_RDMA_PIECE_MAX ((size_t)4 << 20)
/* Maximum number of pieces in flight in each direction. */
#define GP_RDMA_PIECES 4
/* Maximum time of silence, in milliseconds (also at most a third of gp_conn_set_timeout()), after
 * which a heartbeat probes the peer's device. This end's device itself reports a failure after
 * about 15 s. */
#define GP_RDMA_HEARTBEAT_MS 10000
/* Interval in milliseconds at which a sleeping client checks its descriptors: if the program has
 * closed them, no event wakes it. */
#define GP_RDMA_POLL_MS 1000
/* Maximum time in milliseconds that closing a connection waits for its last segments to be sent. */
#define GP_RDMA_LINGER_MS 2000
/* Maximum size of a preamble, the first bytes of a connection, which state its purpose
 * (protocol/preamble.h). It is sent as private data of the connection manager. */
#define GP_RDMA_PREAMBLE_MAX 64

enum gp_rdma_type {
	GP_RDMA_BYTES = 1, /* next bytes of the stream; uses a credit */
	GP_RDMA_CREDIT,    /* no bytes, only the credits in the header */
	/* client: address and key of memory with the next bytes of its bulk, to be read */
	GP_RDMA_OFFER,
	GP_RDMA_TAKEN, /* server: the memory of the oldest offer has been read */
	/* client: address and key of memory to which the server is to write its next bulk bytes */
	GP_RDMA_ROOM,
	GP_RDMA_FILLED, /* server: the memory of the oldest room has been written */
	GP_RDMA_END,    /* no more segments follow */
};

/* Memory of the client; key 0: the bytes are to be discarded. */
struct gp_rdma_remote_buffer {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

/* Queue of buffers of the client, in the order in which they were announced. */
struct gp_rdma_remote_buffers {
	struct gp_rdma_remote_buffer list[GP_RDMA_PIECES];
	unsigned int first, count;
};

/* Staging memory of this end, for bulk outside of registered memory; allocated on first use. */
struct gp_rdma_stage {
	uint8_t *memory; /* GP_RDMA_PIECES pieces; NULL: not yet allocated */
	struct ibv_mr *mr;
};

struct gp_rdma_conn {
	struct gp_stream stream;
	struct rdma_cm_id *id;
	struct rdma_event_channel *events;
	struct gp_rdma_device *device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool server;           /* this end has accepted the connection */
	atomic_uint spin_usec; /* copy of the stream's value, read by the sending thread */
	int poll_fd;           /* epoll set of all events that wake a sleeping thread */
	int wake_fd;           /* eventfd */
	/* like poll_fd and wake_fd, for a caller that polls gp_conn_fd(); open if `watched` */
	int watch_fd, notify_fd;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* broadcast when the state below may have changed */
	bool asleep;       /* a thread waits for the device; other threads wait for that thread */
	bool armed;        /* completion notification is requested */
	bool woken;        /* wake_fd is readable */
	bool watched;      /* the receiving thread polls watch_fd, or has done so earlier */
	bool is_notified;  /* notify_fd is readable */
	int down;          /* negative errno that ended the connection; 0: usable */
	bool ended;        /* the peer has sent GP_RDMA_END */
	bool ending;       /* GP_RDMA_END is to be sent after all earlier segments */
	bool disconnected; /* rdma_disconnect() was called */
	bool lost;         /* the program has closed descriptors of the connection */
	bool more;         /* the last poll left completions to be processed by the next one */
	unsigned int unacked_events; /* completion events not yet acknowledged to libibverbs */
	uint64_t completions;        /* number of completions so far */
	uint64_t heard;              /* value of `completions` at the last check for silence */
	int64_t heard_ms;            /* time of the last check for silence */

	/* Numbers of the last work requests that were posted, completed, and posted with a
	 * completion notification requested. Work requests are numbered from 1. */
	uint64_t posted, retired, signalled;
	uint64_t end_number; /* number of the work request with GP_RDMA_END; 0: not yet posted */
	unsigned int
		inline_max; /* maximum size of a segment that the device copies when it is posted */

	/* Outgoing segments: [tx_free, tx_post) are posted, [tx_post, tx_fill) wait for credits.
	 * All three are running counts; segment n uses buffer n modulo GP_RDMA_TX. */
	uint8_t *tx;
	struct ibv_mr *tx_mr;
	unsigned int tx_free, tx_post, tx_fill;
	uint64_t tx_number[GP_RDMA_TX]; /* work request that reads the buffer; 0: it was copied */
	uint32_t tx_size[GP_RDMA_TX];   /* bytes in the segment, without its header */
	unsigned int credits;           /* data segments that may be sent now */

	/* Registered memory for incoming segments: GP_RDMA_RX slots. rx_queue is a ring of the
	 * received data segments that are not consumed: bytes [at, end) of the slot. */
	uint8_t *rx;
	struct ibv_mr *rx_mr;
	struct {
		unsigned int slot;
		uint32_t at, end;
	} rx_queue[GP_RDMA_RX];
	unsigned int rx_first, rx_count;
	unsigned int credits_owed;           /* credits to be returned to the peer */
	uint8_t early[GP_RDMA_PREAMBLE_MAX]; /* bytes received while connecting (the preamble) */
	size_t early_at, early_end;

	/* Transfer of bulk. stage_out is used by the sending thread, stage_in by the receiving
	 * thread. */
	size_t direct_left; /* bytes left of the last received message's bulk */
	/* server: memory of the client not yet read, and not yet written */
	struct gp_rdma_remote_buffers offers, rooms;
	uint64_t taken, filled;   /* client: numbers of GP_RDMA_TAKEN and GP_RDMA_FILLED received */
	uint64_t offered, roomed; /* client: numbers of offers and rooms sent */
	struct gp_rdma_stage stage_out, stage_in;

	/* Segments that wait for credits while no thread sends (rdma_progress.c). progress_next and
	 * is_in_progress are guarded by the lock of rdma_progress.c, not by `lock`. */
	unsigned int progress_post; /* tx_post when progress_deadline was set */
	int64_t progress_deadline; /* the peer must return credits by this time; 0: nothing waits */
	struct gp_rdma_conn *progress_next;
	bool is_in_progress;
};

static inline struct gp_rdma_conn *
gp_conn_to_rdma(struct gp_conn *conn)
{
	return (struct gp_rdma_conn *)conn;
}

static inline uint8_t *
gp_rdma_get_rx_memory(const struct gp_rdma_conn *conn, unsigned int slot)
{
	return conn->rx + slot * GP_RDMA_SEGMENT;
}

static inline uint8_t *
gp_rdma_get_tx_memory(const struct gp_rdma_conn *conn, unsigned int slot)
{
	return conn->tx + slot % GP_RDMA_TX * GP_RDMA_SEGMENT;
}

static inline bool
gp_rdma_has_bytes(const struct gp_rdma_conn *conn) GP_LOCKED(conn->lock)
{
	return conn->rx_count > 0 || conn->early_at < conn->early_end;
}

/*
 * rdma_device.c: an RDMA device as used for one peer, with its protection domain, in which memory
 * keys are valid. A client has a protection domain for each daemon, so that the keys given to one
 * daemon are of no use to another. A daemon gives no keys to clients and has one protection domain
 * for all.
 */
struct gp_rdma_device {
	struct gp_rdma_device *next;
	struct ibv_context *verbs;
	/* Address of the daemon that the client uses the device for; all zero: this process is the
	 * daemon. */
	struct sockaddr_storage peer;
	struct ibv_pd *pd;
	unsigned int index;
	unsigned int reads_max; /* maximum outstanding RDMA reads of a queue pair */
	pid_t process;          /* process that opened the device; a forked child cannot use it */
	bool abandoned;         /* in a forked child: its descriptors are closed */
	bool posts_by_kernel;   /* posts through verbs->cmd_fd, not through mapped device memory */
};

/* Stores the device for a peer in *device_p, opening it on first use. peer: the daemon's address;
 * NULL in a daemon. Returns 0, or a negative errno with the reason in detail. The device is never
 * closed. Called without the connection's lock. */
int gp_rdma_device_get(struct ibv_context *verbs, const struct sockaddr *peer,
		       struct gp_rdma_device **device_p, char *detail, size_t size);
/* Returns whether the device's descriptor is still open and the library's own: libibverbs writes to
 * it without a check. Any thread, without a lock. */
bool gp_rdma_device_is_usable(const struct gp_rdma_device *device);
/* In a forked child: closes the descriptors of the parent's device; only the first call has an
 * effect. Called without a lock. */
void gp_rdma_device_abandon(struct gp_rdma_device *device);
/* Allocates registered memory for connections of this device. remote: the peer is given its key.
 * Returns 0, and the caller frees the memory with gp_rdma_memory_free(); or a negative errno, and
 * nothing is allocated. Any thread, without a lock. */
int gp_rdma_memory_alloc(struct gp_rdma_device *device, size_t size, bool remote,
			 uint8_t **memory_p, struct ibv_mr **mr_p);
/* Ends the registration and frees the memory; accepts NULL. Any thread, without a lock. */
void gp_rdma_memory_free(uint8_t *memory, size_t size, struct ibv_mr *mr);
/* Implements gp_conn_register_range(), with its results except that the capability is not checked.
 * Any thread, without a lock. */
int gp_rdma_register_range(struct gp_rdma_device *device, void *base, size_t size, int dma_buf);
/* Returns the registration that covers all of [base, base + size), created on first use if the
 * range was passed to gp_memory_register(). NULL: the range is not registered, or cannot be.
 * remote: the peer is given its key. The registration is valid until gp_memory_unregister(). Any
 * thread, without a lock. */
struct ibv_mr *gp_rdma_get_registration(struct gp_rdma_device *device, const void *base,
					size_t size, bool remote);

/* rdma_pair.c: creates the descriptors, queue pair, completion queue and segment memory of a
 * connection. Returns 0, or a negative errno with the reason in detail; gp_rdma_destroy() then
 * frees the parts that were created. Called before other threads use the connection. */
int gp_rdma_queue_init(struct gp_rdma_conn *conn, char *detail, size_t size);
/* Creates watch_fd and notify_fd if they do not exist. Returns false if no descriptor is left. */
bool gp_rdma_watch_init(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Closes the connection's descriptors, except those whose number the program has reused. Called
 * when no other thread uses the connection. */
void gp_rdma_close_descriptors(struct gp_rdma_conn *conn);
/* Destroys what gp_rdma_queue_init() has created, also partially. Called when no other thread uses
 * the connection. */
void gp_rdma_queue_fini(struct gp_rdma_conn *conn);

/* rdma_queue.c and rdma_wait.c */
/* Marks the connection as unusable: sets `down` and the error text, unless they are set. Does not
 * set the text if the peer has ended the connection. Does not wake other threads. r: negative
 * errno. */
void gp_rdma_set_down(struct gp_rdma_conn *conn, int r, const char *text) GP_LOCKED(conn->lock);
/* Processes completions of the device: received segments, completed work requests, failures
 * (gp_rdma_set_down()). Then posts segments and credits as far as possible, and broadcasts
 * `changed`. Limits the work per call and sets `more` if completions are left. */
void gp_rdma_poll_cq(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Returns whether the number is still a descriptor of the connection; if not, marks the connection
 * as down. Must be called before each write or read of the descriptor. */
bool gp_rdma_owns_fd(struct gp_rdma_conn *conn, int fd) GP_LOCKED(conn->lock);
/* Waits until the connection's state may have changed: for a completion, an event, gp_rdma_wake()
 * or the next heartbeat, which it sends. deadline: by gp_now_ms(), -1: none; 0: does not wait.
 * Returns -EAGAIN at the deadline; otherwise 0, also if the connection is down: the caller checks
 * `down`, and its own condition in both cases. */
int gp_rdma_wait(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* Waits like gp_rdma_wait(), but polls for spin_usec before it sleeps, for a thread that expects a
 * reply soon. */
int gp_rdma_wait_spinning(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* Makes watch_fd readable, at once or at the next event. */
void gp_rdma_arm_watch(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Processes pending events of the connection manager. A disconnect or a failure marks the
 * connection as down. */
void gp_rdma_poll_events(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Returns 0 if segments can be sent; -ESHUTDOWN: this end was shut down; -EPIPE: the peer has ended
 * the connection; otherwise `down`. */
int gp_rdma_check_sendable(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Posts a work request with the next number, without waiting. Sets wr->wr_id, and IBV_SEND_SIGNALED
 * in wr->send_flags for at least every eighth request; the caller sets the rest. signal: requests a
 * completion notification. The send queue must have space (GP_RDMA_SEND_QUEUE). Returns 0, or a
 * negative errno, the value of `down`. */
int gp_rdma_post_send(struct gp_rdma_conn *conn, struct ibv_send_wr *wr, bool signal)
	GP_LOCKED(conn->lock);
/* Returns the deadline by which the peer must make progress while a sender waits for it, from
 * gp_conn_set_send_timeout(); -1: no limit. */
int64_t gp_rdma_get_send_deadline(const struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* If the deadline has passed and the connection is not down, marks it as down, disconnects and
 * wakes the thread in gp_rdma_wait(). */
void gp_rdma_check_send_deadline(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* Waits until the work request with this number is complete and its memory may be reused.
 * Disconnects if the peer makes no progress until the send deadline, or this end is shut down.
 * Returns 0, or the value of `down`, after which the memory may be reused too. */
int gp_rdma_wait_retired(struct gp_rdma_conn *conn, uint64_t number) GP_LOCKED(conn->lock);
/* After gp_rdma_disconnect(): waits until the device has completed the work request with this
 * number, or for at most GP_RDMA_LINGER_MS if the device does not respond. */
void gp_rdma_wait_flushed(struct gp_rdma_conn *conn, uint64_t number) GP_LOCKED(conn->lock);
/* Posts a receive for a slot of rx memory; marks the connection as down on failure. */
void gp_rdma_post_receive(struct gp_rdma_conn *conn, unsigned int slot) GP_LOCKED(conn->lock);
/* Returns credits to the peer when it may run out of them while this end has nothing else to
 * send. */
void gp_rdma_return_credits(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Sends a heartbeat if the peer has been silent for GP_RDMA_HEARTBEAT_MS or a third of
 * gp_conn_set_timeout(), the shorter of the two. */
void gp_rdma_send_heartbeat(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Sends a segment that needs no credit; may wait for space in the send queue, up to the send
 * deadline. place: the buffer to announce; NULL: none. Returns 0; -ESHUTDOWN: this end was shut
 * down; or the value of `down`. */
int gp_rdma_send_control(struct gp_rdma_conn *conn, enum gp_rdma_type type,
			 const struct gp_rdma_remote_buffer *place) GP_LOCKED(conn->lock);
/* Posts segments that were waiting for credits, as far as credits and the send queue allow; then
 * GP_RDMA_END, if `ending` is set. Frees the buffers of completed segments. */
void gp_rdma_flush(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Disconnects; only the first call has an effect. Afterwards the peer's device cannot access memory
 * of this end. */
void gp_rdma_disconnect(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);
/* Wakes the thread that sleeps in gp_rdma_wait(), if any. */
void gp_rdma_wake(struct gp_rdma_conn *conn) GP_LOCKED(conn->lock);

/* rdma_io.c: struct gp_stream_io of a connection; called without the lock. */
extern const struct gp_stream_io gp_rdma_io;

/* rdma_bulk.c: transfers a message's bulk directly; called without the lock. Waits until all memory
 * may be reused. Returns 0 or a negative errno. */
int gp_rdma_send_bulk(struct gp_rdma_conn *conn, const struct iovec *bulk, int count);
/* Receives the next bytes of the last message's bulk; dst NULL discards them. Called without the
 * lock; waits as gp_conn_recv_bulk(). Returns 0 or a negative errno. */
int gp_rdma_recv_bulk(struct gp_rdma_conn *conn, uint8_t *dst, size_t size);
/* Frees the staging memory. Called when no other thread uses the connection. */
void gp_rdma_bulk_fini(struct gp_rdma_conn *conn);

/* rdma_progress.c: lets the progress thread post segments that wait for credits while no other
 * thread sends. Does not wait; called without the lock. */
void gp_rdma_progress_add(struct gp_rdma_conn *conn);
/* Ends the use of the connection by the progress thread; waits for its current pass over all
 * connections. Called without the lock. */
void gp_rdma_progress_remove(struct gp_rdma_conn *conn);

/* rdma_cm.c: implementations of the operations of backend.h; called without the lock. */
int gp_rdma_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
		    int timeout_ms, struct gp_conn **conn_p, char *detail, size_t detail_size);
int gp_rdma_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
		   struct gp_listener **listener_p, char *detail, size_t detail_size);
int gp_rdma_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
int gp_rdma_listener_fd(const struct gp_listener *listener);
void gp_rdma_listener_destroy(struct gp_listener *listener);

/* Allocates a connection that owns `events`; the caller sets id, device and queues, and destroys it
 * with gp_rdma_destroy(). Returns NULL if out of memory; `events` then remains the caller's. */
struct gp_rdma_conn *gp_rdma_create(struct rdma_event_channel *events, bool server);
/* rdma.c: destroys a connection, also a partially initialized one. Waits at most GP_RDMA_LINGER_MS
 * for the last segments. Called without the lock. */
void gp_rdma_destroy(struct gp_conn *conn);

#endif /* GP_RDMA_H */
