/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message channel between the supervisor and a worker: a SOCK_SEQPACKET socket pair that carries
 * whole messages, each with an optional file descriptor. Both ends run the same program, so structs
 * are sent in memory layout.
 *
 * Threads: gpd_channel_send() from any; gpd_channel_post() and gpd_channel_flush() from one;
 * gpd_channel_recv() from one.
 * Errors: 0; GP_E_EOF if the other end has closed the channel; a negative errno if the channel is
 * unusable.
 */
#ifndef GPD_CHANNEL_H
#define GPD_CHANNEL_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum size of a message in bytes, and number of address ranges to avoid in struct
 * gpd_channel_open. */
#define GPD_CHANNEL_MAX ((size_t)128 << 10)
#define GPD_AVOID_MAX 512

enum gpd_channel_type {
	/* Supervisor to worker. */
	GPD_CHANNEL_OPEN = 1, /* struct gpd_channel_open */
	/* struct gpd_channel_open: give the session another address window. */
	GPD_CHANNEL_MOVE_WINDOW,
	GPD_CHANNEL_LANE, /* struct gpd_channel_lane; the descriptor is the connection of lane 0 */
	GPD_CHANNEL_DATA_LANE, /* the same for another lane; result: its number, from 1 */
	/* Text: why the session ends; result 1: by a decision of the operator (terminated, or
	 * credentials no longer valid), and its program may continue. */
	GPD_CHANNEL_CLOSE,
	GPD_CHANNEL_SMS_CHANGED, /* the session's multiprocessors in the ledger have changed */
	/* Sessions are marked in the ledger to release cached memory; either direction. */
	GPD_CHANNEL_RECALL,
	GPD_CHANNEL_RETIRE, /* accept no more sessions; exit after the last one */
	GPD_CHANNEL_STOP,   /* end all sessions and exit */
	GPD_CHANNEL_PING,   /* reply with PONG */
	/* Worker to supervisor. */
	GPD_CHANNEL_READY,  /* a packed Gpupool__Welcome: the part common to all sessions */
	GPD_CHANNEL_FAILED, /* text: why the worker cannot start */
	GPD_CHANNEL_OPENED, /* struct gpd_channel_opened; also the reply to MOVE_WINDOW */
	/* Result: number of a lane that arrived over RDMA or passed the TLS key check. */
	GPD_CHANNEL_LANE_OPENED,
	GPD_CHANNEL_CLOSED, /* result; text: why the session ended */
	GPD_CHANNEL_BUSY, /* result 1: work of a disconnected client still runs; 0: it has ended */
	GPD_CHANNEL_HEAP_LEAKED, /* kernels have leaked device heap; there is no session */
	GPD_CHANNEL_LOST,        /* result; struct gpd_channel_lost */
	GPD_CHANNEL_PONG,        /* the main thread runs */
};

struct gpd_channel_header {
	uint32_t type;    /* enum gpd_channel_type */
	int32_t result;   /* CUresult, or as specified by the type */
	uint64_t session; /* 0: the message concerns the worker */
};

struct gpd_range {
	uint64_t address, size;
};

struct gpd_channel_open {
	char peer[128];
	char let_in_by[200];  /* how the client was authenticated, for the log; "" in MOVE_WINDOW */
	uint64_t window_size; /* minimum; 0: as configured */
	uint32_t line;        /* index of the session in the ledger */
	uint32_t avoid_count;
	uint8_t ticket[32];   /* for lanes over RDMA; zero in MOVE_WINDOW */
	uint8_t program[32];  /* Hello.program_key; zero: the client sent none */
	uint32_t lanes_max;   /* lane numbers are below it */
	uint32_t compression; /* enum gp_pack_mode of the data that the worker sends */
	uint64_t features;    /* enum gp_feature that both ends support */
	struct gpd_range avoid[];
};

struct gpd_channel_lane {
	char scheme[16]; /* of the transport */
	uint32_t tls;    /* 1: the connection starts with a TLS handshake that uses the key */
	uint8_t key[32];
};

struct gpd_channel_opened {
	struct gpd_range window; /* size 0: none */
	struct gpd_range host;   /* addresses of the session's host memory; or size 0 */
	uint32_t device_count;
	int32_t granted_device;
	uint64_t granted;       /* memory already reserved for the session on this device; or 0 */
	uint64_t memory_free[]; /* per device; followed by Welcome.known_images */
};

/* Why CUDA in this process became unusable. A client sees only the names of sessions of its own
 * tenant. */
#define GPD_LOST_TENANTS 4
struct gpd_channel_lost {
	char log[1024];    /* with all sessions whose work may be the cause */
	char others[1024]; /* for clients of the other tenants: without names */
	uint32_t tenant_count;
	struct {
		uint32_t tenant; /* index in the ledger */
		char text[1024]; /* with the sessions of this tenant */
	} tenants[GPD_LOST_TENANTS];
};

struct gpd_channel_message {
	struct gpd_channel_header header;
	const void *data; /* aligned to 8; valid until the next receive */
	size_t size;
	int fd; /* owned by the receiver, which closes it; or -1 */
};

struct gpd_channel {
	int fd;
	pthread_mutex_t send_lock;
	/* Messages that the socket did not accept yet. */
	struct gpd_channel_queued *queue, **queue_end;
	size_t queued;
	uint8_t *buffer;
};

/* Creates the socket pair. Both descriptors are close-on-exec and blocking. Returns 0 or a negative
 * errno. */
int gpd_channel_pair(int fds[2]);

/* Initializes one end, which then owns the descriptor. Returns 0 or -ENOMEM. */
int gpd_channel_init(struct gpd_channel *channel, int fd);
void gpd_channel_fini(struct gpd_channel *channel);

/* Sends a message; blocks until the socket has accepted it. The caller keeps fd (-1: none). */
int gpd_channel_send(struct gpd_channel *channel, const struct gpd_channel_header *header,
		     const void *data, size_t size, int fd);

/* Sends a message without blocking; a message that the socket does not accept is queued, and sent
 * by gpd_channel_flush(). The channel owns fd (-1: none) and closes it in every case. Returns
 * -ENOBUFS if the other end has stopped reading. */
int gpd_channel_post(struct gpd_channel *channel, const struct gpd_channel_header *header,
		     const void *data, size_t size, int fd);
/* Sends queued messages until the socket accepts no more; the caller polls for POLLOUT. */
int gpd_channel_flush(struct gpd_channel *channel);

/* Receives a message. Returns GP_E_TIMEOUT if wait is false and there is none. */
int gpd_channel_recv(struct gpd_channel *channel, bool wait, struct gpd_channel_message *message);

/* Copies the message's data into text as a string, truncated to size, and returns text. */
const char *gpd_channel_text(const struct gpd_channel_message *message, char *text, size_t size);

#endif /* GPD_CHANNEL_H */
