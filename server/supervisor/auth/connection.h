/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection accepted by the supervisor: a control connection of a client, or a data connection
 * (lane) that is passed on to a worker.
 *
 * Each started connection has a receiver thread that posts events to the supervisor's main thread.
 * The main thread owns the connection's state and is the only thread that changes it; a peer that
 * sends half a message delays only its own receiver. The receiver's last event is
 * GPD_CONNECTION_LANE or GPD_CONNECTION_CLOSED.
 *
 * Order: gpd_connection_create(), then the admission sets client_address; gpd_connection_start();
 * events, from gpd_connection_pop_events(); for a lane gpd_connection_release_fd();
 * gpd_connection_destroy().
 * Ownership: all connections belong to the main thread; a receiver uses its own one until its last
 * event.
 * Threads: the main thread, unless a member states otherwise. No function blocks, except
 * gpd_connection_destroy() and gpd_connection_release_fd(), which join a thread that is about to
 * end.
 */
#ifndef GPD_CONNECTION_H
#define GPD_CONNECTION_H

#include "protocol/control.h"
#include "protocol/preamble.h"
#include "server/supervisor/auth/authorization.h"
#include "server/supervisor/auth/client_address.h"
#include "server/supervisor/tenancy/queue.h"
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
 * a lane becomes CLOSING as soon as its preamble has arrived.
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
	 * own; left when that worker is ready, fails to start, or the wait times out. */
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

/* A connection. The receiver thread uses conn, scheme, send_lock, last, queued, has_preamble and
 * send_room; it sets has_uid, uid and pid before it posts Hello, and reads worker_is_hung. All
 * other members belong to the main thread. */
struct gpd_connection {
	struct gpd_connection *next; /* list of the admission */
	struct gp_conn *conn;        /* owned; NULL after gpd_connection_release_fd() */
	char scheme[16];             /* of the address that it arrived on */
	pthread_t thread;            /* the receiver */
	bool started;                /* the thread exists and has not been joined */
	/* Serializes the two threads' sends; never held while blocking. */
	pthread_mutex_t send_lock;
	struct gpd_connection_event *last; /* preallocated last event; NULL once it is posted */
	/* Number of posted messages that the main thread has not consumed yet. The receiver
	 * increments it; the main thread decrements it for each GPD_CONNECTION_MESSAGE. */
	_Atomic unsigned int queued;
	_Atomic bool has_preamble; /* the preamble has arrived */
	/* Maximum size in bytes of a message that can be sent without waiting; set before Hello is
	 * posted. */
	size_t send_room;

	/* Reference to the entry of the address that it connects from; set by the admission. */
	struct gpd_client_address *client_address;
	enum gpd_connection_state state; /* changed by gpd_connection_set_state() only */
	int64_t deadline_ms; /* time of gp_now_ms() at which the state ends; INT64_MAX: none */
	Gpupool__ControlMessage *hello; /* the client's Hello, owned; NULL until it has arrived */
	bool has_uid; /* the system reports the peer's local user; valid with hello */
	uid_t uid;    /* the peer's local user, with has_uid */
	/* Process that has connected over a local socket; 0: the system does not report it; valid
	 * with hello. */
	pid_t pid;
	/* gpd_worker_process_is_own() of pid, set by the admission when Hello has arrived. */
	bool is_own_process;
	struct gpd_principal principal; /* authenticated identity; valid from QUEUED on */
	/* "host pid program" of the client, printable, for the log; "" until Hello has arrived */
	char name[128];
	uint64_t session;                  /* ID of its session; 0: none yet */
	struct gpd_worker_process *worker; /* worker that runs or opens the session; NULL: none */
	/* The worker does not respond; the receiver thread reports it in replies to Ping. */
	atomic_bool worker_is_hung;
	struct gpd_assignment assignment; /* tenant and devices; valid from QUEUED on */
	uint32_t log_budget; /* index of its log budget (log_budget.h); valid with the assignment */
	/* QUEUED: text of the limit that the client waits for; "": it waits for a worker. */
	char full_reason[GPD_CONFIG_ERROR_MAX];
	/* The limit in full_reason; valid with it. */
	enum gpd_queue_limit limit;
	/* Device that the session will probably use first; valid from QUEUED on, after the first
	 * attempt to open the session. */
	int first_device;
	/* QUEUED: order in which it has begun to wait for a place on first_device (queue.h); 0: it
	 * has not waited for one. */
	uint64_t place_order;
	/* Line for the client's standard error when its session starts; "": none. */
	char notice[320];
	bool evicted;        /* its session ends by a decision of the operator, not by its client */
	const char *refusal; /* REFUSED: static text that will be sent */
	unsigned int window_requests; /* number of address windows that the client has requested */
	/* Dedicated worker for this session; NULL: none yet, or the session is shared. */
	struct gpd_worker_process *own_worker;
	/* Secret of its lanes, and the public ID derived from it (protocol/ticket.h); valid once it
	 * has a session. */
	uint8_t ticket[GP_TICKET_SIZE], ticket_name[GP_TICKET_SIZE];
	struct gp_preamble lane; /* CLOSING: preamble of a connection that is a lane */
	/* Maximum number of lanes of the session; lane numbers are less than it. */
	unsigned int lanes_max;
	uint32_t lanes; /* bit n: the worker has received lane n */
	/* Set of enum gp_feature that both ends support; valid from OPENING on. */
	uint64_t features;
};

/* Type of an event, with the members of the event that are valid. */
enum gpd_connection_event_type {
	GPD_CONNECTION_MESSAGE, /* message: Hello or WindowRequest */
	GPD_CONNECTION_LANE,    /* preamble; no data has been read after it */
	GPD_CONNECTION_CLOSED,  /* text contains the reason; ended and refused are valid */
};

/* An event of a receiver, allocated by malloc(). */
struct gpd_connection_event {
	struct gpd_connection_event *next;
	enum gpd_connection_event_type type;
	struct gpd_connection *peer;
	Gpupool__ControlMessage *message;
	struct gp_preamble preamble;
	bool ended; /* CLOSED: the peer has closed the connection in an orderly way */
	/* CLOSED: the TLS handshake failed, or the preamble does not match the address's use of
	 * TLS */
	bool refused;
	char text[256]; /* CLOSED: the reason */
};

/* Creates the event queue. Called once, before the first connection. Returns 0 or a negative errno
 * of eventfd(2). The queue exists until the process ends. */
int gpd_connection_setup(void);
/* Returns a descriptor that polls as readable while there are events. It belongs to the queue. */
int gpd_connection_events_fd(void);
/* Removes all pending events from the queue and returns their list, oldest first; NULL: none. The
 * caller frees each event with free(), and its message with gp_control_free(). */
struct gpd_connection_event *gpd_connection_pop_events(void);

/* Creates a connection in HANDSHAKE, which owns conn. It is not started, and has no deadline and no
 * client_address. timeout_ms: maximum time of silence of the client, and of a send that makes no
 * progress; 0: no limit. Returns NULL if out of memory; conn is then destroyed. */
struct gpd_connection *gpd_connection_create(struct gp_conn *conn, const char *scheme,
					     unsigned int timeout_ms);
/* Starts the receiver thread. Called once. Returns 0; or a negative errno if it cannot be started,
 * and the caller destroys the connection. */
GP_MUST_CHECK int gpd_connection_start(struct gpd_connection *connection);
/* After the event GPD_CONNECTION_LANE: joins the thread and moves the connection's descriptor to
 * *fd_p, which the caller closes. Returns 0; or GP_E_INVALID or GP_E_UNSUPPORTED
 * (gp_conn_release_fd() of transport.h), and the connection keeps the descriptor. In both cases the
 * caller destroys the connection. */
int gpd_connection_release_fd(struct gpd_connection *connection, int *fd_p);
/* Joins the thread, releases the address, destroys conn and frees the connection with its Hello.
 * The thread must end by itself: called after its last event, after a shutdown of conn, or before
 * it is started. */
void gpd_connection_destroy(struct gpd_connection *connection);

/* Changes the state and its deadline_ms, a time of gp_now_ms() or INT64_MAX for none. Returns true;
 * or false, without changing anything, if the state cannot follow the current one. QUEUED and
 * STARTING can be set again with another deadline. */
bool gpd_connection_set_state(struct gpd_connection *connection, enum gpd_connection_state state,
			      int64_t deadline_ms);

/*
 * Sends without waiting. If the peer does not read earlier messages, or the message does not fit
 * into the socket's send buffer, the connection is shut down, and its receiver posts the last
 * event. The message stays the caller's.
 */
void gpd_connection_send(struct gpd_connection *connection, const Gpupool__ControlMessage *message);

#endif /* GPD_CONNECTION_H */
