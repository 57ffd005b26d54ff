/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket pair between the supervisor and a worker: whole messages, each perhaps with a
 * descriptor.  Both ends are the same program, so the structs travel as they are.
 *
 * Any thread may send, one receives.  0 done; GP_E_EOF the other end is gone; negative errno: the
 * channel is dead.
 */
#ifndef GPD_CHANNEL_H
#define GPD_CHANNEL_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_CHANNEL_MAX ((size_t)128 << 10)
#define GPD_AVOID_MAX 512

enum gpd_channel_type {
	/* Supervisor to worker. */
	GPD_CHANNEL_OPEN = 1,    /* struct gpd_channel_open */
	GPD_CHANNEL_MOVE_WINDOW, /* struct gpd_channel_open: give the session another window */
	GPD_CHANNEL_LANE,        /* struct gpd_channel_lane; the descriptor is the connection */
	GPD_CHANNEL_DATA_LANE,   /* the same; result: the lane's number, 1 and up */
	GPD_CHANNEL_CLOSE,       /* text: why the session ends; result 1: it was ended for reasons
				  * of the operator's, and its program may go on */
	GPD_CHANNEL_SMS_CHANGED, /* the ledger says something else of the session's multiprocessors
				  */
	GPD_CHANNEL_RECALL,      /* the ledger says who is to give back what it keeps; either way */
	GPD_CHANNEL_RETIRE,      /* no more sessions: end when the last one does */
	GPD_CHANNEL_STOP,        /* end all sessions and the process */
	GPD_CHANNEL_PING,        /* answer PONG */
	/* Worker to supervisor. */
	GPD_CHANNEL_READY,       /* a packed Gpupool__Welcome: what holds for all sessions */
	GPD_CHANNEL_FAILED,      /* text: why the worker cannot start */
	GPD_CHANNEL_OPENED,      /* struct gpd_channel_opened, also in answer to REWINDOW */
	GPD_CHANNEL_LANE_OPENED, /* result: the number of a lane that has come over RDMA, or has
				  * shown the key of TLS */
	GPD_CHANNEL_CLOSED,      /* result; text: why the session ended */
	GPD_CHANNEL_BUSY, /* result 1: work of a client that is gone goes on; 0: it has ended */
	GPD_CHANNEL_HEAP_LEAKED, /* kernels have left memory allocated; there is no session */
	GPD_CHANNEL_LOST,        /* result; struct gpd_channel_lost */
	GPD_CHANNEL_PONG,        /* the main thread runs */
};

struct gpd_channel_header {
	uint32_t type;    /* enum gpd_channel_type */
	int32_t result;   /* CUresult, or as the type says */
	uint64_t session; /* 0: of the worker */
};

struct gpd_range {
	uint64_t address, size;
};

struct gpd_channel_open {
	char peer[128];
	char let_in_by[200];  /* for the log; "" in REWINDOW */
	uint64_t window_size; /* at least; 0: as configured */
	uint32_t line;        /* of the session in the ledger */
	uint32_t avoid_count;
	uint8_t ticket[32];   /* for lanes that come over RDMA; zero in REWINDOW */
	uint8_t program[32];  /* Hello.program_key; zero: the client says none */
	uint32_t lanes_max;   /* numbers below it */
	uint32_t compression; /* enum gp_pack_mode: of what the worker sends */
	uint64_t features;    /* enum gp_feature: that both ends have */
	struct gpd_range avoid[];
};

struct gpd_channel_lane {
	char scheme[16]; /* of the transport */
	uint32_t tls;    /* 1: a TLS handshake comes first, with the key */
	uint8_t key[32];
};

struct gpd_channel_opened {
	struct gpd_range window; /* size 0: there is none */
	struct gpd_range host;   /* addresses of host memory that the session has; or size 0 */
	uint32_t device_count;
	int32_t granted_device;
	uint64_t granted;       /* memory that the session has on this device already; or 0 */
	uint64_t memory_free[]; /* per device; behind them Welcome.known_images */
};

/* What ended this process's CUDA.  Clients are shown the names of their own tenant's sessions
 * alone. */
#define GPD_LOST_TENANTS 4
struct gpd_channel_lost {
	char log[1024];    /* with all sessions whose work it may have been */
	char others[1024]; /* for clients of the other tenants: without names */
	uint32_t tenant_count;
	struct {
		uint32_t tenant; /* in the ledger */
		char text[1024]; /* with the sessions of this tenant */
	} tenants[GPD_LOST_TENANTS];
};

struct gpd_channel_message {
	struct gpd_channel_header header;
	const void *data; /* aligned to 8; valid until the next receive */
	size_t size;
	int fd; /* the receiver's to close, or -1 */
};

struct gpd_channel {
	int fd;
	pthread_mutex_t send_lock;
	struct gpd_channel_queued *queue, **queue_end; /* what the socket did not take yet */
	size_t queued;
	uint8_t *buffer;
};

/* Both descriptors are close-on-exec and non-blocking on neither end. */
int gpd_channel_pair(int fds[2]);

/* Takes the descriptor over.  0 or -ENOMEM. */
int gpd_channel_init(struct gpd_channel *channel, int fd);
void gpd_channel_fini(struct gpd_channel *channel);

/* Blocks until the message is in the socket. */
int gpd_channel_send(struct gpd_channel *channel, const struct gpd_channel_header *header,
		     const void *data, size_t size, int fd);

/* Never blocks: what the socket does not take is kept and goes with gpd_channel_flush().  The
 * descriptor is closed when it has been sent.  -ENOBUFS: the other end has stopped reading. */
int gpd_channel_post(struct gpd_channel *channel, const struct gpd_channel_header *header,
		     const void *data, size_t size, int fd);
int gpd_channel_flush(struct gpd_channel *channel);

/* GP_E_TIMEOUT: nothing there and wait is false. */
int gpd_channel_recv(struct gpd_channel *channel, bool wait, struct gpd_channel_message *message);

/* The message's data as a string; it is never longer than the message. */
const char *gpd_channel_text(const struct gpd_channel_message *message, char *text, size_t size);

#endif /* GPD_CHANNEL_H */
