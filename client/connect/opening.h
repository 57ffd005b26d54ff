/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a session that is being opened, and the steps of the opening. Internal to
 * client/connect.
 *
 * Order: connect.c calls gpc_control_connection_open(), which calls gpc_first_lane_connect_start()
 * and gpc_first_lane_connect_finish(); then gpc_link_reserve_window() and gpc_first_lane_open();
 * and gpc_first_lane_drop() at the end, also after a failure.
 * Ownership: struct gpc_opening is a local variable of functions in connect.c and lane_connect.c,
 * which release everything in it before they return.
 * Threads: one thread per opening.
 * Errors: functions that return an int, except where noted, return 0, a negative errno or a GP_E_*
 * code; on failure opening->error contains a text for the user, and *conn_p or *message_p must not
 * be used. Connections that are already in *link stay there; the caller closes them with
 * gpc_link_fini().
 * Units: times are milliseconds, unless the name ends in _ns.
 */
#ifndef GPC_OPENING_H
#define GPC_OPENING_H

#include "client/connect/connect.h"
#include "client/connect/credentials.h"
#include "protocol/token_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Timeout for connecting, for the daemon's preamble and for a TLS handshake, unless GPUPOOL_TIMEOUT
 * is shorter. */
#define GPC_OPENING_MS 10000
/* Timeout for the Welcome and each other message of the daemon. Longer than the daemon's own limit
 * for starting a worker, so that the daemon's reason for a refusal is received. */
#define GPC_WELCOME_MS 60000
/* Optional features that this client supports: a mask of enum gp_feature (protocol/control.h). */
#define GPC_FEATURES                                                                               \
	((uint64_t)GP_FEATURE_SPREAD | GP_FEATURE_LZ4 | GP_FEATURE_LATE | GP_FEATURE_TENANT_WORKERS)

/* A session that is being opened. connect.c and lane_connect.c set the members, unless another
 * function is named; ahead_fd is initially -1, and members that do not apply are zero. */
struct gpc_opening {
	const struct gp_url *url;
	struct gp_url control; /* address for the control connection; for RDMA, url with the scheme
				  tls or tcp */
	/* timeout of gpc_opening_connect(); gpc_first_lane_open() shortens it to 3 s while it tries
	 * RDMA and has an alternative */
	int connect_ms;
	/* the daemon's numbers of the requested devices; device_count 0: all devices */
	const int32_t *devices;
	int device_count;
	struct gpc_credentials credentials;
	bool has_token;
	/* valid if has_token is set; connect.c erases it after gpc_control_connection_open() */
	struct gp_token token;
	/* the daemon's address, with which messages begin */
	char text[GP_URL_TEXT_MAX];
	char *error;
	size_t error_size;
	const struct gpc_admission_wait *waiting; /* NULL: the client does not retry after -EBUSY */
	/* GPUPOOL_ISOLATION requests a tenant's worker; set when Hello is sent */
	bool wants_tenant_worker;
	bool probe; /* gpc_link_probe(): no session is opened, and link->welcome is an Account */
	bool full; /* set by gpc_opening_recv_message(): the daemon refused the session, but a retry
		      may succeed */
	/* Socket that is being connected for lane 0 while the daemon processes Hello; owned; -1:
	 * none. */
	int ahead_fd;
	/* The connection from ahead_fd, once it is established; owned; NULL: none. */
	struct gp_conn *ahead;
	uint64_t ahead_ns; /* time when connecting `ahead` started */
};

/* Returns the smaller of GPC_OPENING_MS and GPUPOOL_TIMEOUT, in milliseconds. */
int gpc_opening_limit_ms(void);

/* Sets the error for a daemon that has sent nothing within gpc_opening_limit_ms(). The error
 * reports that its machine does not acknowledge data, or, if it does, the reason in `otherwise`.
 * Returns GP_E_TIMEOUT. */
int gpc_opening_fail_timeout(struct gpc_opening *opening, const struct gp_conn *conn,
			     const char *otherwise);

/* Sets the error to the daemon's address, directly followed by the text, a printf() format. Returns
 * r. */
int gpc_opening_fail(struct gpc_opening *opening, int r, const char *text, ...) GP_PRINTF(3, 4);

/* Opens a connection and sends the preamble with it. Blocks at most opening->connect_ms. On success
 * the caller owns *conn_p. */
GP_MUST_CHECK int gpc_opening_connect(struct gpc_opening *opening, const struct gp_url *url,
				      const struct gp_preamble *preamble, struct gp_conn **conn_p);

/* Returns whether connections to this address use TLS after the preamble. */
bool gpc_url_wants_tls(const struct gp_url *url);
/* Returns whether connections to this address use RDMA, or may use it (rdma+tcp). */
bool gpc_url_wants_rdma(const struct gp_url *url);
/* Returns whether lanes to this address can use shared memory: it is a local socket (unix://), and
 * GPUPOOL_SHM does not forbid it. The daemon must offer it, too. */
bool gpc_url_wants_shm(const struct gp_url *url);

/* Opens the control connection, sends Hello, and receives and validates the Welcome (an Account if
 * opening->probe is set). *link is zeroed before. Stores both in *link, with round_trip_ns and the
 * options that Hello contained: lanes, lanes_exact, compression. Meanwhile, connects lane 0 ahead
 * of time. Blocks at most GPC_WELCOME_MS for the Welcome. Defined in control_connection.c. */
GP_MUST_CHECK int gpc_control_connection_open(struct gpc_opening *opening, struct gpc_link *link);
/* Receives the next message of the daemon, which must be of this kind; blocks at most
 * GPC_WELCOME_MS. On success the caller frees *message_p with gp_control_free(). Errors:
 * GP_E_UNSUPPORTED: the daemon refused the session (opening->full is then set if a retry may
 * succeed) or reported an error of it; GP_E_INVALID: another message; GP_E_TIMEOUT; GP_E_EOF: the
 * daemon closed the connection; other errors of the connection. Defined in control_connection.c. */
GP_MUST_CHECK int gpc_opening_recv_message(struct gpc_opening *opening, struct gp_conn *conn,
					   Gpupool__ControlMessage__BodyCase wanted,
					   Gpupool__ControlMessage **message_p);

/* Reserves the session's window in this process; gpc_window_release() (window.h) undoes it. If a
 * window is not free here, requests another one from the daemon, and updates link->facts; tries
 * four windows. Returns GP_E_RESOURCE if no window is free here and in the daemon, or if the
 * process's limit for address space is too low. Other errors: -ENOMEM, the errno of reading
 * /proc/self/maps, the error of sending, or one of gpc_opening_recv_message(); nothing is reserved
 * after an error. Defined in window_request.c. */
GP_MUST_CHECK int gpc_link_reserve_window(struct gpc_opening *opening, struct gpc_link *link);

/* Starts connecting lane 0 ahead of time, to the address of the connection `control`, without
 * blocking. Has no effect for RDMA, a local socket, or on failure. Defined in lane_connect.c. */
void gpc_first_lane_connect_start(struct gpc_opening *opening, const struct gp_conn *control);
/* Waits, at most gpc_opening_limit_ms(), for the connection of gpc_first_lane_connect_start(), if
 * that has started one. On failure opening->ahead is NULL, and gpc_first_lane_open() connects
 * again. Defined in lane_connect.c. */
void gpc_first_lane_connect_finish(struct gpc_opening *opening, const struct gp_conn *control);
/* Opens lane 0, over the connection made ahead of time if that is usable, and stores it in
 * link->lane. Sets link->lanes_url for the other lanes. Called when *link has the control
 * connection and the Welcome. For rdma+tcp:// tries RDMA first, then TCP or TLS. Returns
 * GP_E_UNSUPPORTED if the address requires RDMA and the daemon does not serve it, or the error of
 * the connection or its TLS handshake. Defined in lane_connect.c. */
GP_MUST_CHECK int gpc_first_lane_open(struct gpc_opening *opening, struct gpc_link *link);
/* Closes the connection made ahead of time, if there is one. Defined in lane_connect.c. */
void gpc_first_lane_drop(struct gpc_opening *opening);

#endif /* GPC_OPENING_H */
