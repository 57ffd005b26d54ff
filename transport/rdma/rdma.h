/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rdma backend, for the files rdma*.c of this folder only (protocol/wire.md, 8).
 *
 * A connection is one reliable queue pair.  Its bytes travel as segments, by send and receive with
 * credits; bulk from GP_RDMA_DIRECT_MIN on travels from memory to memory.  The end that accepted
 * the connection, the *server*, does all reads and writes; the one that connected names the memory.
 * So a server gives nobody a key to its memory.
 *
 * All below `lock` belongs to who has the lock.  Functions want it held unless they say otherwise.
 */
#ifndef GP_RDMA_H
#define GP_RDMA_H

#include "base/lock.h"
#include "transport/message_stream.h"
#include "transport/rdma/rdma_lib.h"

#include <pthread.h>

#define GP_RDMA_SEGMENT ((size_t)8 << 10)
#define GP_RDMA_SEGMENT_HEADER 8
/* Segments of bytes that may be sent before the peer has taken any. */
#define GP_RDMA_CREDITS 32
/* Besides them: what the protocol below may send at any time without being asked. */
#define GP_RDMA_CONTROL 24
#define GP_RDMA_RX (GP_RDMA_CREDITS + GP_RDMA_CONTROL)
#define GP_RDMA_TX 32
#define GP_RDMA_SEND_QUEUE 128
/* Behind the segments out: one for each request of the send queue. */
#define GP_RDMA_CONTROL_SIZE 32
#define GP_RDMA_DIRECT_MIN ((size_t)32 << 10)
/* Of one piece of bulk under way, through staging and without. */
#define GP_RDMA_STAGE_PIECE ((size_t)256 << 10)
#define GP_RDMA_PIECE_MAX ((size_t)4 << 20)
#define GP_RDMA_PIECES 4
/* A peer that has been silent for a third of gp_conn_set_timeout(), and at most so long, is asked
 * for an answer of its device, which itself gives up after about 15 s. */
#define GP_RDMA_HEARTBEAT_MS 10000
/* What can wake a sleeping client is gone with its descriptors: it looks for them so often. */
#define GP_RDMA_POLL_MS 1000
/* How long the end of a connection waits for what was sent. */
#define GP_RDMA_LINGER_MS 2000
#define GP_RDMA_PREAMBLE_MAX 64

enum gp_rdma_type {
	GP_RDMA_BYTES = 1, /* the next bytes of the stream; takes a credit */
	GP_RDMA_CREDIT,    /* nothing but the credits in the header */
	GP_RDMA_OFFER,     /* client: the next bytes of its bulk lie there */
	GP_RDMA_TAKEN,     /* server: the oldest offer has been read */
	GP_RDMA_ROOM,      /* client: the next bytes of the server's bulk go there */
	GP_RDMA_FILLED,    /* server: the oldest room has been written */
	GP_RDMA_END,       /* no more segments come */
};

/* Memory at the client; key 0: nowhere, what would go there is not wanted. */
struct gp_rdma_remote_buffer {
	uint64_t address;
	uint32_t key;
	uint32_t size;
};

/* Places in the order in which they were named. */
struct gp_rdma_remote_buffers {
	struct gp_rdma_remote_buffer list[GP_RDMA_PIECES];
	unsigned int first, count;
};

/* Memory of this end through which bulk passes that lies in no registered memory. */
struct gp_rdma_stage {
	uint8_t *memory; /* GP_RDMA_PIECES pieces; NULL: none yet */
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
	atomic_uint spin_usec;   /* as in the stream, for the sending thread, too */
	int poll_fd;             /* epoll: all that can wake a sleeper */
	int wake_fd;             /* eventfd */
	int watch_fd, notify_fd; /* the same for who polls outside of this, if `watched` */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asleep;       /* a thread waits for the device; the others wait for it */
	bool armed;        /* the completion queue will say so when there is something */
	bool woken;        /* wake_fd is readable */
	bool watched;      /* the receiving thread polls watch_fd, or has done so */
	bool is_notified;  /* notify_fd is readable */
	int down;          /* why nothing can be sent or received any more: negative errno */
	bool ended;        /* the peer said so */
	bool ending;       /* this end shall say so, when all before it is sent */
	bool disconnected; /* rdma_disconnect() was called */
	bool lost;         /* the program has closed descriptors of the connection's */
	bool more;         /* the last look has left completions for the next */
	unsigned int unacked_events;
	uint64_t completions; /* counts completions */
	uint64_t heard;       /* of these, when somebody last looked ... */
	int64_t heard_ms;     /* ... and when that was */

	/* The send queue: work requests are numbered. */
	uint64_t posted, retired, signalled;
	uint64_t end_number; /* of this end's last word; 0: not yet said */
	unsigned int inline_max;

	/* Segments out: [tx_free, tx_post) are with the device, [tx_post, tx_fill) want credits. */
	uint8_t *tx;
	struct ibv_mr *tx_mr;
	unsigned int tx_free, tx_post, tx_fill;
	uint64_t tx_number[GP_RDMA_TX];
	uint32_t tx_size[GP_RDMA_TX];
	unsigned int credits;

	/* Segments in. */
	uint8_t *rx;
	struct ibv_mr *rx_mr;
	struct {
		unsigned int slot;
		uint32_t at, end;
	} rx_queue[GP_RDMA_RX];
	unsigned int rx_first, rx_count;
	unsigned int credits_owed;           /* credits to be given back */
	uint8_t early[GP_RDMA_PREAMBLE_MAX]; /* the preamble that came with the connection */
	size_t early_at, early_end;

	/* Bulk. */
	size_t direct_left;                          /* of the message last received */
	struct gp_rdma_remote_buffers offers, rooms; /* server: not yet read or written */
	uint64_t taken, filled;                      /* client: answers that have come, ... */
	uint64_t offered, roomed;                    /* ... to so many */
	struct gp_rdma_stage stage_out, stage_in;

	/* What waits for credits with no thread to send it: until when the peer must take some. */
	unsigned int progress_post;
	int64_t progress_deadline; /* 0: nothing waits */
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
 * rdma_device.c: a device as one peer may use it.  A client has a protection domain for each
 * daemon, so that the keys which one was given are worth nothing to another; a daemon, which gives
 * none to anybody, has one for all its clients.
 */
struct gp_rdma_device {
	struct gp_rdma_device *next;
	struct ibv_context *verbs;
	struct sockaddr_storage peer; /* where the daemon listens; all zero: a daemon's own */
	struct ibv_pd *pd;
	unsigned int index;
	unsigned int reads_max; /* outstanding ones of a queue pair */
	pid_t process;          /* that opened it: a child of a fork cannot use it */
	bool abandoned;         /* in such a child: its descriptors are closed */
	bool posts_by_kernel;   /* through verbs->cmd_fd, not through memory of the device */
};

/* peer: the daemon's address, NULL in a daemon.  0, or -errno with words in detail.  Devices stay
 * for the process's life. */
int gp_rdma_device_get(struct ibv_context *verbs, const struct sockaddr *peer,
		       struct gp_rdma_device **device_p, char *detail, size_t size);
/* Whether its descriptor is still what it was: libibverbs writes to it, whatever it is. */
bool gp_rdma_device_is_usable(const struct gp_rdma_device *device);
/* In the child of a fork, of a device of its parent's: closes what it has of it, once. */
void gp_rdma_device_abandon(struct gp_rdma_device *device);
/* Memory of this size for connections of this device; remote: the peer is given its key. */
int gp_rdma_memory_alloc(struct gp_rdma_device *device, size_t size, bool remote,
			 uint8_t **memory_p, struct ibv_mr **mr_p);
void gp_rdma_memory_free(uint8_t *memory, size_t size, struct ibv_mr *mr);
/* gp_conn_register_range(). */
int gp_rdma_register_range(struct gp_rdma_device *device, void *base, size_t size, int dma_buf);
/* The registration of all of [base, base + size), made if the range is kept memory; NULL: none. */
struct ibv_mr *gp_rdma_get_registration(struct gp_rdma_device *device, const void *base,
					size_t size, bool remote);

/* rdma_pair.c */
int gp_rdma_queue_init(struct gp_rdma_conn *conn, char *detail, size_t size);
/* Makes watch_fd, if it is not there.  Whether it is. */
bool gp_rdma_watch_init(struct gp_rdma_conn *conn);
/* Closes those of the descriptors that are still the connection's. */
void gp_rdma_close_descriptors(struct gp_rdma_conn *conn);
void gp_rdma_queue_fini(struct gp_rdma_conn *conn);

/* rdma_queue.c */
/* The first reason stays.  r: negative errno. */
void gp_rdma_set_down(struct gp_rdma_conn *conn, int r, const char *text);
/* Handles what the device has completed, if that is not without end: `more` says so. */
void gp_rdma_poll_cq(struct gp_rdma_conn *conn);
/* rdma_wait.c */
/* Whether the number is still a descriptor of the connection's; otherwise the connection is down.
 * To be asked before anybody writes to it or reads from it. */
bool gp_rdma_owns_fd(struct gp_rdma_conn *conn, int fd);
/* Until something may have changed: 0, or -EAGAIN at the deadline.  Without the lock meanwhile. */
int gp_rdma_wait(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* The same for who is about to get an answer: it looks for a while before it sleeps. */
int gp_rdma_wait_spinning(struct gp_rdma_conn *conn, int64_t deadline) GP_LOCKED(conn->lock);
/* Makes watch_fd readable now or with the next event. */
void gp_rdma_arm_watch(struct gp_rdma_conn *conn);
/* Looks for events of the connection manager. */
void gp_rdma_poll_events(struct gp_rdma_conn *conn);
/* 0, or why nothing can be sent; the peer's end is -EPIPE. */
int gp_rdma_check_sendable(struct gp_rdma_conn *conn);
/* One work request, numbered.  0, or down. */
int gp_rdma_post_send(struct gp_rdma_conn *conn, struct ibv_send_wr *wr, bool signal);
/* Before a sender waits for what the peer has to do: until when it must have begun (-1: without
 * limit), and whether it is too late: then the connection goes down. */
int64_t gp_rdma_get_send_deadline(const struct gp_rdma_conn *conn);
void gp_rdma_check_send_deadline(struct gp_rdma_conn *conn, int64_t deadline);
int gp_rdma_wait_retired(struct gp_rdma_conn *conn, uint64_t number) GP_LOCKED(conn->lock);
/* After gp_rdma_disconnect(): the device has done with this request, too, or does not answer. */
void gp_rdma_wait_flushed(struct gp_rdma_conn *conn, uint64_t number) GP_LOCKED(conn->lock);
void gp_rdma_post_receive(struct gp_rdma_conn *conn, unsigned int slot);
/* The peer shall not run out of credits while this end has nothing to say. */
void gp_rdma_return_credits(struct gp_rdma_conn *conn);
/* Asks the peer's device for an answer, if it has been silent for long. */
void gp_rdma_send_heartbeat(struct gp_rdma_conn *conn);
/* A segment that takes no credit.  It may wait for room in the send queue. */
int gp_rdma_send_control(struct gp_rdma_conn *conn, enum gp_rdma_type type,
			 const struct gp_rdma_remote_buffer *place) GP_LOCKED(conn->lock);
/* Sends what has waited for credits. */
void gp_rdma_flush(struct gp_rdma_conn *conn);
/* After this the peer's device cannot reach memory of this end. */
void gp_rdma_disconnect(struct gp_rdma_conn *conn);
void gp_rdma_wake(struct gp_rdma_conn *conn);

/* rdma_io.c */
extern const struct gp_stream_io gp_rdma_io;

/* rdma_bulk.c; without the lock */
int gp_rdma_send_bulk(struct gp_rdma_conn *conn, const struct iovec *bulk, int count);
int gp_rdma_recv_bulk(struct gp_rdma_conn *conn, uint8_t *dst, size_t size);
void gp_rdma_bulk_fini(struct gp_rdma_conn *conn);

/* rdma_courier.c; without the lock: sends what waits for credits when no other thread is there */
void gp_rdma_progress_add(struct gp_rdma_conn *conn);
void gp_rdma_progress_remove(struct gp_rdma_conn *conn);

/* rdma_cm.c */
int gp_rdma_connect(const struct gp_url *url, const void *preamble, size_t preamble_size,
		    int timeout_ms, struct gp_conn **conn_p, char *detail, size_t detail_size);
int gp_rdma_listen(const struct gp_url *url, struct gp_listener **listener_p, char *detail,
		   size_t detail_size);
int gp_rdma_accept(struct gp_listener *listener, int timeout_ms, struct gp_conn **conn_p);
int gp_rdma_listener_fd(const struct gp_listener *listener);
void gp_rdma_listener_destroy(struct gp_listener *listener);

/* rdma_cm.c: without id, device and queues, which the caller gives it; the events are its own.
 * NULL: no memory, and the events are still the caller's. */
struct gp_rdma_conn *gp_rdma_create(struct rdma_event_channel *events, bool server);
/* rdma.c: accepts a connection that is only half made. */
void gp_rdma_destroy(struct gp_conn *conn);

#endif /* GP_RDMA_H */
