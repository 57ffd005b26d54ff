/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the supervisor, from its first byte on.
 *
 * Each has, once it was started, a thread that receives and posts events to the supervisor's one
 * main thread, which owns all the state below and is the only one to act on it; so a peer that
 * sends half a message, or nothing, keeps only its own thread waiting.  The thread's last event is
 * GPD_CONNECTION_LANE or GPD_CONNECTION_CLOSED.
 */
#ifndef GPD_PEER_H
#define GPD_PEER_H

#include "protocol/control.h"
#include "protocol/preamble.h"
#include "server/supervisor/door/auth.h"
#include "server/supervisor/door/source.h"
#include "server/supervisor/tenancy/tenants.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_worker_process;
struct gpd_connection_event;

/*
 * How far a connection has come on its way to a session.  Whatever the state, the connection may
 * end (ENDING); a connection that turns out to be a lane ends as a peer at once.
 */
enum gpd_connection_state {
	/* In: the connection has begun.  Out: Hello has come, and is let in, refused, or wrong.  It
	 * has no name and counts among those without a session. */
	GPD_CONNECTION_HANDSHAKE,
	/* In: its credentials are wrong, and it has tried often.  Out: after a while it is told so.
	 * It counts as before. */
	GPD_CONNECTION_REFUSED,
	/* In: it was let in, or the worker that was to open its session has ended.  Out: there is a
	 * worker and a place, or it has waited for too long.  It may be of another tenant or class
	 * after a reload. */
	GPD_CONNECTION_QUEUED,
	/* In: it has a place, and a line in the ledger, for a session in a worker of its own.  Out:
	 * that worker is ready, cannot start, or is late. */
	GPD_CONNECTION_STARTING,
	/* In: the worker was asked to open its session.  Out: the worker has done so, or not. */
	GPD_CONNECTION_OPENING,
	/* In: it is told its window.  Out: its lane has come, or it asks for another window. */
	GPD_CONNECTION_WELCOMED,
	/* In: it has asked for another window.  Out: the worker has found one, or none. */
	GPD_CONNECTION_MOVING,
	/* In: lane 0 is with the worker.  Out: the session is over.  More lanes may come. */
	GPD_CONNECTION_RUNNING,
	/* In: the connection is shut down, or a lane.  Out: its thread has posted its last event,
	 * and it is gone.  It has no session, and nothing is sent to it. */
	GPD_CONNECTION_CLOSING,
	GPD_CONNECTION_STATES,
};

struct gpd_connection {
	struct gpd_connection *next;
	struct gp_conn *conn;
	char scheme[16];
	pthread_t thread;
	bool started; /* the thread, which has not been waited for */
	pthread_mutex_t send_lock;
	struct gpd_connection_event *last; /* until it is posted */
	/* Messages that were posted and that the main thread has not taken: it counts them down. */
	_Atomic unsigned int queued;
	_Atomic bool has_preamble; /* its preamble has come */
	size_t send_room; /* bytes of a message that is sent without waiting; before Hello is posted
			   */

	/* Main thread only. */
	struct gpd_client_address *client_address; /* where it comes from */
	enum gpd_connection_state state;           /* changed by gpd_connection_set_state() only */
	int64_t deadline_ms;                       /* of the state; INT64_MAX: none */
	Gpupool__ControlMessage *hello;
	bool has_uid;                   /* with hello: the system says who the peer is, */
	uid_t uid;                      /* this user of this machine */
	struct gpd_principal principal; /* once it was let in */
	char name[128];                 /* "host pid program" */
	uint64_t session;
	struct gpd_worker_process *worker; /* that has the session; NULL: it is over */
	atomic_bool worker_is_hung;        /* and does not answer: for the peer's thread, too */
	struct gpd_assignment assignment;  /* once Hello came */
	uint32_t log_budget;               /* with the grant: what the log has room for about it */
	char full_reason[GPD_CONFIG_ERROR_MAX]; /* QUEUED: what there is no place in, or "" */
	bool daemon_is_full;                    /* it is the daemon that is full, not its tenant */
	bool evicted;                           /* its session ends for reasons of the operator's */
	const char *refusal;                    /* REFUSED: what it will be told */
	unsigned int window_requests;           /* that it has asked for */
	struct gpd_worker_process
		*own_worker; /* started for this session alone; NULL: there is none (yet) */
	uint8_t ticket[GP_TICKET_SIZE], ticket_name[GP_TICKET_SIZE];
	struct gp_preamble lane; /* ENDING: of a connection that is a lane */
	unsigned int lanes_max;  /* numbers below it */
	uint32_t lanes;          /* bit for each that the worker has got */
	uint64_t features;       /* enum gp_feature: that both ends have */
};

enum gpd_connection_event_type {
	GPD_CONNECTION_MESSAGE, /* message is the receiver's now */
	GPD_CONNECTION_LANE,    /* preamble; nothing was received beyond it */
	GPD_CONNECTION_CLOSED,  /* text says why */
};

struct gpd_connection_event {
	struct gpd_connection_event *next;
	enum gpd_connection_event_type type;
	struct gpd_connection *peer;
	Gpupool__ControlMessage *message;
	struct gp_preamble preamble;
	bool ended;   /* GONE: in good order */
	bool refused; /* GONE: by this end */
	char text[256];
};

/* Before the first peer.  0 or a negative errno. */
int gpd_connection_setup(void);
/* Readable when there are events. */
int gpd_connection_events_fd(void);
/* All events so far, the oldest first, for the caller to free; NULL: none. */
struct gpd_connection_event *gpd_connection_pop_events(void);

/* Takes the connection over in any case, and does nothing with it yet.  timeout_ms: for which the
 * client may be silent, 0: without limit.  NULL: no memory. */
struct gpd_connection *gpd_connection_create(struct gp_conn *conn, const char *scheme,
					     unsigned int timeout_ms);
/* Its thread receives from now on.  0 or a negative errno. */
GP_MUST_CHECK int gpd_connection_start(struct gpd_connection *peer);
/* After its last event, which is GPD_CONNECTION_LANE: the connection without the peer. */
int gpd_connection_release_fd(struct gpd_connection *peer, int *fd_p);
/* After its last event, or before it was started. */
void gpd_connection_destroy(struct gpd_connection *peer);

/* Main thread: with the deadline of the state, INT64_MAX: none.  False, and nothing has changed:
 * the state cannot come after the one that the peer is in.  In QUEUED and STARTING a peer may be
 * given another deadline. */
bool gpd_connection_set_state(struct gpd_connection *peer, enum gpd_connection_state state,
			      int64_t deadline_ms);

/*
 * Main thread: sends without waiting. If the peer has not read earlier messages, or the message
 * does not fit into the socket's send buffer, the connection is shut down.
 */
void gpd_connection_send(struct gpd_connection *peer, const Gpupool__ControlMessage *message);

#endif /* GPD_PEER_H */
