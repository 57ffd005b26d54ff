/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMA backend; private to the files rdma*.c of this directory (protocol/wire.md, 9).
 *
 * A connection is a reliable connected queue pair. The byte stream is sent as segments, by send and
 * receive with credits; bulk of at least GP_RDMA_DIRECT_MIN bytes is transferred directly between
 * memories. The accepting end, the *server*, performs all RDMA reads and writes; the connecting
 * end, the client, names its memory. A server therefore never gives a peer a key to its memory.
 *
 * Threads: members below `lock` are protected by it. Functions must be called with the lock held
 * unless their comment says otherwise.
 * Errors: negative errno, with the connection's error text set.
 */
#ifndef GP_RDMA_H
#define GP_RDMA_H

#include "base/lock.h"
#include "transport/message_stream.h"
#include "transport/rdma/rdma_lib.h"

#include <pthread.h>

#define GP_RDMA_SEGMENT ((size_t)8 << 10)
#define GP_RDMA_SEGMENT_HEADER 8
/* Data segments that may be sent before the peer has consumed any. */
#define GP_RDMA_CREDITS 32
/* In addition: segments of the other types, which need no credit. */
#define GP_RDMA_CONTROL 24
#define GP_RDMA_RX (GP_RDMA_CREDITS + GP_RDMA_CONTROL)
#define GP_RDMA_TX 32
#define GP_RDMA_SEND_QUEUE 128
/* After the outgoing segments in tx memory: a buffer for each work request of the send queue. */
#define GP_RDMA_CONTROL_SIZE 32
#define GP_RDMA_DIRECT_MIN ((size_t)32 << 10)
/* Sizes of a piece of bulk in flight: through staging memory, and directly. */
#define GP_RDMA_STAGE_PIECE ((size_t)256 << 10)
#define GP_RDMA_PIECE_MAX ((size_t)4 << 20)
#define GP_RDMA_PIECES 4
/* Maximum time of silence (also at most a third of gp_conn_set_timeout()) after which a heartbeat
 * probes the peer's device; the own device reports a failure after about 15 s. */
#define GP_RDMA_HEARTBEAT_MS 10000
/* Interval at which a sleeping client checks its descriptors: if the program has closed them, no
 * event wakes it. */
#define GP_RDMA_POLL_MS 1000
/* Time that closing a connection waits for its last segments to be sent. */
#define GP_RDMA_LINGER_MS 2000
#define GP_RDMA_PREAMBLE_MAX 64

enum gp_rdma_type {
	GP_RDMA_BYTES = 1, /* next bytes of the stream; uses a credit */
	GP_RDMA_CREDIT,    /* only the credits in the header */
	GP_RDMA_OFFER,     /* client: memory with the next bytes of its bulk */
	GP_RDMA_TAKEN,     /* server: the oldest offer has been read */
	GP_RDMA_ROOM,      /* client: memory for the next bytes of the server's bulk */
	GP_RDMA_FILLED,    /* server: the oldest room has been written */
	GP_RDMA_END,       /* no more segments follow */
};

/* Memory of the client; key 0: the bytes are to be discarded. */
struct gp_rdma_remote_buffer {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

/* Queue of buffers in the order in which they were named. */
struct gp_rdma_remote_buffers {
	struct gp_rdma_remote_buffer list[GP_RDMA_PIECES];
	unsigned int first, count;
};

/* Staging memory of this end, for bulk outside of registered memory. */
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
	bool server;
	atomic_uint spin_usec;   /* copy of the stream's value that the sending thread may read */
	int poll_fd;             /* epoll set of all events that wake a sleeping thread */
	int wake_fd;             /* eventfd */
	int watch_fd, notify_fd; /* the same for a caller that polls gp_conn_fd(), if `watched` */

	pthread_mutex_t lock;
	pthread_cond_t changed;
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
	bool more;         /* the last poll left completions for the next one */
	unsigned int unacked_events;
	uint64_t completions; /* number of completions so far */
	uint64_t heard;       /* value of `completions` at the last check ... */
	int64_t heard_ms;     /* ... and the time of that check */

	/* The send queue; work requests are numbered. */
	uint64_t posted, retired, signalled;
	uint64_t end_number; /* number of the work request with GP_RDMA_END; 0: not yet posted */
	unsigned int inline_max;

	/* Outgoing segments: [tx_free, tx_post) are posted, [tx_post, tx_fill) wait for credits. */
	uint8_t *tx;
	struct ibv_mr *tx_mr;
	unsigned int tx_free, tx_post, tx_fill;
	uint64_t tx_number[GP_RDMA_TX];
	uint32_t tx_size[GP_RDMA_TX];
	unsigned int credits;

	/* Incoming segments. */
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

	/* Bulk transfer. */
	size_t direct_left; /* bytes left of the last received message's bulk */
	struct gp_rdma_remote_buffers offers, rooms; /* server: not yet read or written */
	uint64_t taken, filled;                      /* client: replies received, ... */
	uint64_t offered, roomed;                    /* ... and offers and rooms sent */
	struct gp_rdma_stage stage_out, stage_in;

	/* Segments that wait for credits while no thread sends (rdma_progress.c). */
	unsigned int progress_post;
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
gp_rdma_has_bytes(const struct gp_rdma_conn *conn)
{
	return conn->rx_count > 0 || conn->early_at < conn->early_end;
}

/*
 * rdma_device.c: a device as used for one peer. A client has a protection domain for each daemon,
 * so that the keys given to one daemon are of no use to another. A daemon gives no keys to clients
 * and has one protection domain for all.
 */
struct gp_rdma_device {
	struct gp_rdma_device *next;
	struct ibv_context *verbs;
	/* Address of the daemon; all zero: this process is the daemon. */
	struct sockaddr_storage peer;
	struct ibv_pd *pd;
	unsigned int index;
	unsigned int reads_max; /* maximum outstanding RDMA reads of a queue pair */
	pid_t process;          /* process that opened the device; a forked child cannot use it */
	bool abandoned;         /* in a forked child: its descriptors are closed */
	bool posts_by_kernel;   /* posts through verbs->cmd_fd, not through mapped device memory */
};

/* Returns the device for a peer, opened on first use. peer: the daemon's address, NULL in a daemon.
 * Returns 0, or a negative errno with the reason in detail. Devices are never closed. Without the
 * connection's lock. */
int gp_rdma_device_get(struct ibv_context *verbs, const struct sockaddr *peer,
		       struct gp_rdma_device **device_p, char *detail, size_t size);
/* Whether the device's descriptor is still open and the library's own: libibverbs writes to it
 * without a check. */
bool gp_rdma_device_is_usable(const struct gp_rdma_device *device);
/* In a forked child: closes the descriptors of the parent's device, once. */
void gp_rdma_device_abandon(struct gp_rdma_device *device);
/* Allocates registered memory for connections of this device; remote: the peer is given its key.
 * Returns 0 or a negative errno; freed with gp_rdma_memory_free(). */
int gp_rdma_memory_alloc(struct gp_rdma_device *device, size_t size, bool remote,
			 uint8_t **memory_p, struct ibv_mr **mr_p);
void gp_rdma_memory_free(uint8_t *memory, size_t size, struct ibv_mr *mr);
/* Implements gp_conn_register_range(). */
int gp_rdma_register_range(struct gp_rdma_device *device, void *base, size_t size, int dma_buf);
/* Returns the registration that covers all of [base, base + size), created on first use if the
 * range was passed to gp_memory_register(); otherwise NULL. */
struct ibv_mr *gp_rdma_get_registration(struct gp_rdma_device *device, const void *base,
					size_t size, bool remote);

/* rdma_pair.c: create and destroy the queue pair, completion queue and segment memory of a
 * connection. Returns 0 or a negative errno with the reason in detail. */
int gp_rdma_queue_init(struct gp_rdma_conn *conn, char *detail, size_t size);
/* Creates watch_fd if necessary. Returns false on failure. */
bool gp_rdma_watch_init(struct gp_rdma_conn *conn);
/* Closes the connection's descriptors, except those whose number the program has reused. */
void gp_rdma_close_descriptors(struct gp_rdma_conn *conn);
void gp_rdma_queue_fini(struct gp_rdma_conn *conn);

/* rdma_queue.c */
/* Marks the connection as unusable; the first reason is retained. r: negative errno. */
void gp_rdma_set_down(struct gp_rdma_conn *conn, int r, const char *text);
/* Processes completions. Limits the work per call and sets `more` if completions are left. */
void gp_rdma_poll_cq(struct gp_rdma_conn *conn);
/* rdma_wait.c */
/* Whether the number is still a descriptor of the connection; if not, marks the connection as down.
 * Must be called before each write or read of the descriptor. */
bool gp_rdma_owns_fd(struct gp_rdma_conn *conn, int fd);
/* Waits until the connection's state may have changed. Returns 0, or -EAGAIN at the deadline.
 * Releases the lock while waiting. */
int gp_rdma_wait(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* The same for a thread that expects a reply soon: polls for a while before it sleeps. */
int gp_rdma_wait_spinning(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* Makes watch_fd readable, at once or at the next event. */
void gp_rdma_arm_watch(struct gp_rdma_conn *conn);
/* Processes pending events of the connection manager. */
void gp_rdma_poll_events(struct gp_rdma_conn *conn);
/* Returns 0, or the reason why nothing can be sent; -EPIPE after the peer's end. */
int gp_rdma_check_sendable(struct gp_rdma_conn *conn);
/* Posts a numbered work request. Returns 0 or the connection's `down`. */
int gp_rdma_post_send(struct gp_rdma_conn *conn, struct ibv_send_wr *wr, bool signal);
/* For a sender that waits for the peer: the deadline for the peer to make progress (-1: no limit),
 * and the check of it, which marks the connection as down if it has passed. */
int64_t gp_rdma_get_send_deadline(const struct gp_rdma_conn *conn);
void gp_rdma_check_send_deadline(struct gp_rdma_conn *conn, int64_t deadline);
/* Waits until the work request with this number is complete. Returns 0 or a negative errno. */
int gp_rdma_wait_retired(struct gp_rdma_conn *conn, uint64_t number) GP_LOCKED(conn->lock);
/* After gp_rdma_disconnect(): waits until the device has completed this request, or does not
 * respond. */
void gp_rdma_wait_flushed(struct gp_rdma_conn *conn, uint64_t number) GP_LOCKED(conn->lock);
/* Posts a receive for a slot of rx memory. */
void gp_rdma_post_receive(struct gp_rdma_conn *conn, unsigned int slot);
/* Returns credits to the peer when it may run out of them while this end has nothing else to
 * send. */
void gp_rdma_return_credits(struct gp_rdma_conn *conn);
/* Probes the peer's device if the peer has been silent for long. */
void gp_rdma_send_heartbeat(struct gp_rdma_conn *conn);
/* Sends a segment that needs no credit; may wait for room in the send queue. Returns 0 or a
 * negative errno. */
int gp_rdma_send_control(struct gp_rdma_conn *conn, enum gp_rdma_type type,
			 const struct gp_rdma_remote_buffer *place) GP_LOCKED(conn->lock);
/* Posts segments that were waiting for credits, as far as credits allow. */
void gp_rdma_flush(struct gp_rdma_conn *conn);
/* Disconnects. Afterwards the peer's device cannot access memory of this end. */
void gp_rdma_disconnect(struct gp_rdma_conn *conn);
/* Wakes the thread that sleeps in gp_rdma_wait(). */
void gp_rdma_wake(struct gp_rdma_conn *conn);

/* rdma_io.c */
extern const struct gp_stream_io gp_rdma_io;

/* rdma_bulk.c: called without the lock */
int gp_rdma_send_bulk(struct gp_rdma_conn *conn, const struct iovec *bulk, int count);
int gp_rdma_recv_bulk(struct gp_rdma_conn *conn, uint8_t *dst, size_t size);
void gp_rdma_bulk_fini(struct gp_rdma_conn *conn);

/* rdma_progress.c; called without the lock: hands segments that wait for credits to the progress
 * thread when no other thread sends, and takes the connection back */
void gp_rdma_progress_add(struct gp_rdma_conn *conn);
void gp_rdma_progress_remove(struct gp_rdma_conn *conn);

/* rdma_cm.c */
int gp_rdma_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
		    int timeout_ms, struct gp_conn **conn_p, char *detail, size_t detail_size);
int gp_rdma_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
		   struct gp_listener **listener_p, char *detail, size_t detail_size);
int gp_rdma_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
int gp_rdma_listener_fd(const struct gp_listener *listener);
void gp_rdma_listener_destroy(struct gp_listener *listener);

/* rdma_cm.c: allocates a connection that owns `events`; the caller sets id, device and queues.
 * Returns NULL if out of memory; `events` then remains the caller's. */
struct gp_rdma_conn *gp_rdma_create(struct rdma_event_channel *events, bool server);
/* rdma.c: destroys a connection, also a partially initialized one. */
void gp_rdma_destroy(struct gp_conn *conn);

#endif /* GP_RDMA_H */
