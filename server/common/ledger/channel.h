/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message channel between the supervisor and a worker: a SOCK_SEQPACKET socket pair that carries
 * whole messages, each with an optional file descriptor. Both ends run the same program, so structs
 * are sent in memory layout.
 *
 * Ownership: an initialized struct gpd_channel owns its descriptor until gpd_channel_fini(). Data
 * passed to gpd_channel_send() and gpd_channel_post() may be freed when they return; it may be NULL
 * if its size is 0.
 * Threads: gpd_channel_send() from any number of threads; gpd_channel_post() and
 * gpd_channel_flush() from one thread; gpd_channel_recv() from one thread. An end uses either
 * gpd_channel_send() (the worker) or gpd_channel_post() (the supervisor).
 * Errors: functions return 0 on success; on failure a negative errno. gpd_channel_recv() also
 * returns GP_E_EOF and GP_E_TIMEOUT.
 */
#ifndef GPD_CHANNEL_H
#define GPD_CHANNEL_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum size of a message in bytes, including its header. */
#define GPD_CHANNEL_MAX ((size_t)128 << 10)
/* Maximum number of address ranges in gpd_channel_open.avoid. */
#define GPD_AVOID_MAX 512

/* Type of a message, with the data that follows the header. */
enum gpd_channel_type {
	/* From the supervisor to the worker. */
	/* struct gpd_channel_open: opens a session; the descriptor is that of gpd_ledger_share().
	 */
	GPD_CHANNEL_OPEN = 1,
	/* struct gpd_channel_open: gives the session another address window. */
	GPD_CHANNEL_MOVE_WINDOW,
	/* struct gpd_channel_lane; the descriptor is that of lane 0, the session's first data
	 * connection. */
	GPD_CHANNEL_LANE,
	/* struct gpd_channel_lane with the descriptor of another lane; result: lane number, from
	 * 1. */
	GPD_CHANNEL_DATA_LANE,
	/* Text: the reason why the session ends. Result 1: the operator has ended it (terminated,
	 * or credentials no longer valid), and its program may continue; result 0: any other
	 * reason. */
	GPD_CHANNEL_CLOSE,
	GPD_CHANNEL_SMS_CHANGED, /* the session's multiprocessors in the ledger have changed */
	/* Sessions are marked in the ledger to release cached memory. Sent in both directions. */
	GPD_CHANNEL_RECALL,
	GPD_CHANNEL_RETIRE, /* accept no more sessions; exit after the last one */
	GPD_CHANNEL_STOP,   /* end all sessions and exit */
	GPD_CHANNEL_PING,   /* reply with PONG */
	/* From the worker: result: ordinal of a device: a session needs a context there. From the
	 * supervisor: the reply; session 1: the worker has a place on the device (tenants.h); 0: it
	 * gets none. */
	GPD_CHANNEL_PLACE,
	/* From the worker to the supervisor. */
	/* A packed Gpupool__Welcome (control.proto): the part that is common to all sessions. */
	GPD_CHANNEL_READY,
	/* Text: the reason why the worker cannot start, or why the device monitor watches nothing.
	 * Result: CUresult of the driver, if it is the reason; else 0. */
	GPD_CHANNEL_FAILED,
	/* Result: ordinal of a device; struct gpd_channel_context: the worker is about to create a
	 * context there, or has done so, or has failed. Sent before READY and later. */
	GPD_CHANNEL_CONTEXT,
	GPD_CHANNEL_OPENED, /* struct gpd_channel_opened: the reply to OPEN and to MOVE_WINDOW */
	/* Result: number of a lane that arrived over RDMA or passed the TLS key check. No data. */
	GPD_CHANNEL_LANE_OPENED,
	GPD_CHANNEL_CLOSED, /* result: CUresult; text: the reason why the session ended */
	GPD_CHANNEL_BUSY, /* result 1: work of a disconnected client still runs; 0: it has ended */
	/* Text: why another worker must replace this one. It has no session. */
	GPD_CHANNEL_WORN,
	GPD_CHANNEL_LOST, /* result: CUresult; struct gpd_channel_lost */
	GPD_CHANNEL_PONG, /* reply to PING: the main thread runs */
	/* struct gpd_ledger_query of the session; the supervisor answers in the ledger. */
	GPD_CHANNEL_QUERY,
	/* struct gpd_channel_refused: the worker has refused a connection that requested a
	 * lane. */
	GPD_CHANNEL_LANE_REFUSED,
	/* From the device monitor. Result: bit n: events of device n are watched. */
	GPD_CHANNEL_MONITORS,
	/* From the device monitor. Result: ordinal of the device; struct gpd_device_event. */
	GPD_CHANNEL_DEVICE_EVENT,
};

/* Starts each message. */
struct gpd_channel_header {
	uint32_t type;    /* enum gpd_channel_type */
	int32_t result;   /* CUresult, or as specified by the type */
	uint64_t session; /* 0: the message concerns the worker */
};

/* A range of addresses; size in bytes. */
struct gpd_range {
	uint64_t address, size;
};

/* Data of GPD_CHANNEL_OPEN and GPD_CHANNEL_MOVE_WINDOW. */
struct gpd_channel_open {
	char peer[128];             /* "host pid program" of the client, for the log */
	char authenticated_by[200]; /* how the client was authenticated, for the log; "" in
				       MOVE_WINDOW */
	uint64_t window_size; /* minimum size in bytes of the address window; 0: as configured */
	uint32_t entry;       /* index of the session's entry in the ledger; 0 in MOVE_WINDOW */
	uint32_t avoid_count; /* number of elements of avoid, at most GPD_AVOID_MAX */
	/* Secret by which lanes over RDMA prove that they belong to the session; zero in
	 * MOVE_WINDOW. */
	uint8_t ticket[32];
	/* Hello.program_key, which identifies the client's program; zero: the client sent none. */
	uint8_t program[32];
	char notice[320];   /* line for the client's standard error; "": none; "" in MOVE_WINDOW */
	uint32_t lanes_max; /* maximum number of lanes; lane numbers are less than it */
	/* enum gp_pack_mode (protocol/pack.h) of the data that the worker sends. */
	uint32_t compression;
	/* Set of enum gp_feature (protocol/control.h) that both ends support. */
	uint64_t features;
	/* Addresses that the client's process uses: the window must not overlap them. */
	struct gpd_range avoid[];
};

/* Data of GPD_CHANNEL_LANE and GPD_CHANNEL_DATA_LANE. */
struct gpd_channel_lane {
	char scheme[16]; /* scheme of the transport, for example "tcp" */
	uint32_t tls;    /* 1: the connection starts with a TLS handshake that uses the key */
	uint8_t key[32]; /* TLS pre-shared key, with `tls` */
};

/* How far the creation of a context is. */
enum gpd_context_step {
	GPD_CONTEXT_STARTS, /* the worker calls the driver next, which may hang or crash */
	GPD_CONTEXT_CREATED,
	GPD_CONTEXT_FAILED, /* not sent while the worker starts: it sends FAILED then */
};

/* Data of GPD_CHANNEL_CONTEXT. */
struct gpd_channel_context {
	uint32_t step;  /* enum gpd_context_step */
	int32_t result; /* GPD_CONTEXT_FAILED: CUresult; else 0 */
	/* GPD_CONTEXT_CREATED: device memory that the context takes, in bytes; 0: not known. */
	uint64_t bytes;
};

/* Data of GPD_CHANNEL_OPENED. */
struct gpd_channel_opened {
	/* Address window of the session; size 0: there is none, or in a reply to MOVE_WINDOW no
	 * other one. */
	struct gpd_range window;
	struct gpd_range host;  /* addresses of the session's host memory; size 0: none */
	uint32_t device_count;  /* number of elements of memory_free */
	int32_t granted_device; /* ordinal of the device of `granted` */
	/* Bytes already charged to the session as allowance (worker/memory/allowance.h) on
	 * granted_device; 0: none. */
	uint64_t granted;
	uint32_t contexts; /* bit n: the worker has a context on device n */
	/* Free bytes of each device; followed by Welcome.known_images, packed. */
	uint64_t memory_free[];
};

/* Data of GPD_CHANNEL_LOST: texts on why CUDA in the worker became unusable, zero-terminated. The
 * supervisor sends each client the text for its tenant, because a client may see only the names of
 * sessions of its own tenant. At most GPD_LOST_TENANTS tenants have a text of their own, and at
 * most GPD_LOST_SUSPECTS sessions are named. */
#define GPD_LOST_TENANTS 4
#define GPD_LOST_SUSPECTS 64
struct gpd_channel_lost {
	char log[1024]; /* text with all sessions whose work may be the cause */
	/* Text without names, for clients of tenants that are not in `tenants`. */
	char others[1024];
	uint32_t tenant_count; /* number of valid elements of tenants */
	struct {
		uint32_t tenant; /* index in the ledger */
		char text[1024]; /* text with the sessions of this tenant only */
	} tenants[GPD_LOST_TENANTS];
	/* IDs of the sessions whose kernels may be the cause. */
	uint32_t suspect_count; /* number of valid elements of suspects */
	uint64_t suspects[GPD_LOST_SUSPECTS];
};

/* Data of GPD_CHANNEL_LANE_REFUSED; zero-terminated texts. */
struct gpd_channel_refused {
	char peer[128]; /* address as returned by gp_conn_peer() */
	char reason[256];
	uint32_t has_valid_ticket; /* 1: the peer is a client of the worker */
};

/* An event of a device, as NVML reports it. */
enum gpd_device_event_kind {
	GPD_DEVICE_EVENT_XID,            /* an Xid: an error that the driver reports by a number */
	GPD_DEVICE_EVENT_DOUBLE_BIT_ECC, /* uncorrectable ECC error of memory */
	GPD_DEVICE_EVENT_LOST,           /* NVML_ERROR_GPU_IS_LOST: fallen off the bus */
};

/* Data of GPD_CHANNEL_DEVICE_EVENT. */
struct gpd_device_event {
	uint32_t kind;   /* enum gpd_device_event_kind */
	uint32_t number; /* of an Xid; else 0 */
};

/* A received message. */
struct gpd_channel_message {
	struct gpd_channel_header header;
	/* Aligned to 8 bytes; part of the channel, valid until the next receive. */
	const void *data;
	size_t size; /* size of data in bytes */
	int fd;      /* descriptor, which the receiver of the message must close; -1: none */
};

/* One end of a channel. Order: gpd_channel_init(), the others, gpd_channel_fini(). */
struct gpd_channel {
	int fd;                    /* the socket, owned; -1 after gpd_channel_fini() */
	pthread_mutex_t send_lock; /* serializes gpd_channel_send() */
	/* Messages of gpd_channel_post() that the socket has not accepted yet, oldest first. The
	 * thread that posts and flushes uses it without a lock. */
	struct gpd_channel_queued *queue, **queue_end;
	size_t queued;   /* number of messages in `queue` */
	uint8_t *buffer; /* receive buffer of GPD_CHANNEL_MAX bytes */
};

/* Creates the socket pair. Both descriptors are close-on-exec and blocking, and belong to the
 * caller, which passes one to gpd_channel_init() and the other to the worker. Returns 0; or a
 * negative errno, and there is no descriptor. */
int gpd_channel_pair(int fds[2]);

/* Initializes one end, which owns fd, also on failure. Returns 0; or -ENOMEM, and only
 * gpd_channel_fini() may then be called. */
int gpd_channel_init(struct gpd_channel *channel, int fd);
/* Closes the descriptor, drops queued messages with their descriptors, and frees the buffer. No
 * other thread may use the channel. */
void gpd_channel_fini(struct gpd_channel *channel);

/* Sends a message and blocks without limit until the socket has accepted it. fd is sent as a copy;
 * the caller keeps it (-1: none). Returns 0; -EMSGSIZE if the message is larger than
 * GPD_CHANNEL_MAX; or the negative errno of sendmsg(2), -EPIPE if the other end is closed. */
int gpd_channel_send(struct gpd_channel *channel, const struct gpd_channel_header *header,
		     const void *data, size_t size, int fd);

/* Sends a message without blocking; a message that the socket does not accept is copied to a queue,
 * which gpd_channel_flush() sends. Takes ownership of fd (-1: none), also on failure. Returns 0 if
 * the message was sent or queued; -EMSGSIZE if it is too large; -ENOBUFS if the queue is full
 * because the other end has stopped reading; -ENOMEM; or the negative errno of sendmsg(2). */
int gpd_channel_post(struct gpd_channel *channel, const struct gpd_channel_header *header,
		     const void *data, size_t size, int fd);
/* Sends queued messages until the socket accepts no more, without blocking. Returns 0, also if
 * messages are left: the caller then polls for POLLOUT; or the negative errno of sendmsg(2). */
int gpd_channel_flush(struct gpd_channel *channel);

/* Receives a message; with wait, blocks until there is one. Returns 0; GP_E_TIMEOUT if wait is
 * false and there is no message; GP_E_EOF if the other end is closed; -EPROTO if the message is
 * shorter than a header or longer than the buffer; or a negative errno of recvmsg(2). *message is
 * set on success only; the caller closes message->fd and checks message->size. */
int gpd_channel_recv(struct gpd_channel *channel, bool wait, struct gpd_channel_message *message);

/* Copies the message's data, up to a zero byte, into text as a string, truncated to size bytes
 * including the terminating zero. Returns text. */
const char *gpd_channel_text(const struct gpd_channel_message *message, char *text, size_t size);

#endif /* GPD_CHANNEL_H */
