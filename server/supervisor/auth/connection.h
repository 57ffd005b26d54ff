/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection accepted by the supervisor: a control connection of a client, or a data connection
 * (lane) that is passed on to a worker.
 *
 * Each started connection has a receiver thread that posts events to the supervisor's main thread.
 * The main thread owns the connection's state and is the only thread that changes it; a peer that
 * sends half a message blocks only its own receiver. The receiver's last event is
 * GPD_CONNECTION_LANE or GPD_CONNECTION_CLOSED.
 *
 * Ownership: gpd_connection_create() to gpd_connection_destroy(), by the main thread.
 * Threads: the main thread, unless a member states otherwise.
 */
#ifndef GPD_CONNECTION_H
#define GPD_CONNECTION_H

#include "protocol/control.h"
#include "protocol/preamble.h"
#include "server/supervisor/auth/authorization.h"
#include "server/supervisor/auth/client_address.h"
#include "server/supervisor/tenancy/tenants.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_worker_process;
struct gpd_connection_event;

/*
 * State of a connection on its way to a session. A connection can be closed in any state (CLOSING);
 * one that turns out to be a lane becomes CLOSING at once.
 */
enum gpd_connection_state {
	/* Entered when the connection is accepted, left when Hello has arrived and is accepted,
	 * refused or invalid. It has no session ID, and counts against the limit of connections
	 * without a session. */
	GPD_CONNECTION_HANDSHAKE,
	/* Entered when its credentials are invalid after many failed logins, left when the delayed
	 * refusal has been sent. Counts as HANDSHAKE. */
	GPD_CONNECTION_REFUSED,
	/* Entered when it is authenticated, or when the worker that should have opened its session
	 * has exited; left when a worker and a session slot are available, or the wait times out. A
	 * reload may change its tenant or isolation. */
	GPD_CONNECTION_QUEUED,
	/* Entered when it has a session slot and a ledger entry for a session in a worker of its
	 * own; left when that worker is ready, fails to start or times out. */
	GPD_CONNECTION_STARTING,
	/* Entered when the worker is requested to open the session, left when the worker has
	 * replied. */
	GPD_CONNECTION_OPENING,
	/* Entered when Welcome with the address window is sent, left when lane 0 arrives or the
	 * client requests another window. */
	GPD_CONNECTION_WELCOMED,
	/* Entered when the client has requested another window, left when the worker has
	 * replied. */
	GPD_CONNECTION_MOVING,
	/* Entered when the worker has lane 0, left when the session ends. More lanes may follow. */
	GPD_CONNECTION_RUNNING,
	/* Entered when the connection is shut down, or is a lane; left when the receiver has posted
	 * its last event, and the connection is destroyed. It has no session, and nothing is sent
	 * to it. */
	GPD_CONNECTION_CLOSING,
	GPD_CONNECTION_STATES,
};

struct gpd_connection {
	struct gpd_connection *next;
	struct gp_conn *conn;
	char scheme[16];
	pthread_t thread;
	bool started; /* the thread exists and has not been joined */
	pthread_mutex_t send_lock;
	struct gpd_connection_event *last; /* preallocated last event, until it is posted */
	/* Number of posted messages that the main thread has not consumed yet; it decrements the
	 * count. */
	_Atomic unsigned int queued;
	_Atomic bool has_preamble; /* the preamble has arrived */
	/* Maximum size of a message that can be sent without waiting; set before Hello is
	 * posted. */
	size_t send_room;

	/* Main thread only. */
	struct gpd_client_address *client_address; /* the address that it connects from */
	enum gpd_connection_state state;           /* changed by gpd_connection_set_state() only */
	int64_t deadline_ms;                       /* of the state; INT64_MAX: none */
	Gpupool__ControlMessage *hello;
	bool has_uid;                   /* with hello: the system reports the peer's user, */
	uid_t uid;                      /* which is this local user */
	struct gpd_principal principal; /* identity, once authenticated */
	char name[128];                 /* "host pid program" */
	uint64_t session;
	struct gpd_worker_process *worker; /* that runs the session; NULL: none */
	/* The worker does not respond; also read by the receiver thread. */
	atomic_bool worker_is_hung;
	struct gpd_assignment assignment;       /* tenant and devices, once Hello has arrived */
	uint32_t log_budget;                    /* with the assignment: index of its log budget */
	char full_reason[GPD_CONFIG_ERROR_MAX]; /* QUEUED: which limit is reached, or "" */
	bool daemon_is_full;                    /* the limit is the daemon's, not the tenant's */
	bool evicted;                           /* its session ends by a decision of the operator */
	const char *refusal;                    /* REFUSED: text that will be sent */
	unsigned int window_requests;           /* number of windows that it has requested */
	/* Worker process for this session alone; NULL: none (yet). */
	struct gpd_worker_process *own_worker;
	uint8_t ticket[GP_TICKET_SIZE], ticket_name[GP_TICKET_SIZE];
	struct gp_preamble lane; /* CLOSING: preamble of a connection that is a lane */
	unsigned int lanes_max;  /* lane numbers are below it */
	uint32_t lanes;          /* bit per lane that the worker has received */
	uint64_t features;       /* enum gp_feature that both ends support */
};

enum gpd_connection_event_type {
	GPD_CONNECTION_MESSAGE, /* message, which the receiver of the event owns */
	GPD_CONNECTION_LANE,    /* preamble; no data after it has been read */
	GPD_CONNECTION_CLOSED,  /* text contains the reason */
};

struct gpd_connection_event {
	struct gpd_connection_event *next;
	enum gpd_connection_event_type type;
	struct gpd_connection *peer;
	Gpupool__ControlMessage *message;
	struct gp_preamble preamble;
	bool ended;   /* CLOSED: in an orderly way */
	bool refused; /* CLOSED: by this end */
	char text[256];
};

/* Creates the event queue. Called once, before the first connection. Returns 0 or a negative
 * errno. */
int gpd_connection_setup(void);
/* Returns a descriptor that polls as readable while there are events. */
int gpd_connection_events_fd(void);
/* Returns the list of all pending events, oldest first, which the caller frees; NULL: none. */
struct gpd_connection_event *gpd_connection_pop_events(void);

/* Creates a connection, which owns conn; conn is destroyed on failure as well. timeout_ms is the
 * maximum time of silence of the client, 0: no limit. Returns NULL without memory. */
struct gpd_connection *gpd_connection_create(struct gp_conn *conn, const char *scheme,
					     unsigned int timeout_ms);
/* Starts the receiver thread. Returns 0 or a negative errno. */
GP_MUST_CHECK int gpd_connection_start(struct gpd_connection *peer);
/* After the event GPD_CONNECTION_LANE: moves the connection's descriptor to *fd_p, which the caller
 * closes. Returns 0 or a negative errno. */
int gpd_connection_release_fd(struct gpd_connection *peer, int *fd_p);
/* Joins the thread and frees the connection. Called after its last event, after a shutdown, or
 * before it is started. */
void gpd_connection_destroy(struct gpd_connection *peer);

/* Changes the state and its deadline, INT64_MAX: none. Returns false, and changes nothing, if the
 * state cannot follow the current one. QUEUED and STARTING can be set again with another
 * deadline. */
bool gpd_connection_set_state(struct gpd_connection *peer, enum gpd_connection_state state,
			      int64_t deadline_ms);

/*
 * Main thread: sends without waiting. If the peer has not read earlier messages, or the message
 * does not fit into the socket's send buffer, the connection is shut down.
 */
void gpd_connection_send(struct gpd_connection *peer, const Gpupool__ControlMessage *message);

#endif /* GPD_CONNECTION_H */
