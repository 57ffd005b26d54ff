/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a session that is being opened: parameters, the connection made ahead of time, and the
 * buffer for the error. Internal to client/connect.
 *
 * Ownership: a local variable of the functions in connect.c and lane_connect.c, which release
 * everything in it before they return.
 * Threads: one thread per opening.
 * Errors: the functions return 0, a negative errno or a GP_E_* code; on failure opening->error is
 * set. Connections that are already in *link stay there; the caller closes them with
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

/* Timeout for connecting and for the daemon's first bytes, unless GPUPOOL_TIMEOUT is shorter. */
#define GPC_OPENING_MS 10000
/* Timeout for the Welcome. Longer than the daemon's own limit for starting a worker, so that the
 * daemon's reason for a refusal is reported. */
#define GPC_WELCOME_MS 60000
/* Optional features that this client supports. */
#define GPC_FEATURES ((uint64_t)GP_FEATURE_SPREAD | GP_FEATURE_LZ4 | GP_FEATURE_LATE)

/* A session that is being opened. */
struct gpc_opening {
	const struct gp_url *url;
	struct gp_url control; /* address for the control connection; differs from url for RDMA */
	int connect_ms;
	/* requested devices of the daemon; device_count 0: all */
	const int32_t *devices;
	int device_count;
	struct gpc_credentials credentials;
	bool has_token;
	struct gp_token token;
	/* the daemon's address, for messages */
	char text[GP_URL_TEXT_MAX];
	char *error;
	size_t error_size;
	const struct gpc_admission_wait *waiting; /* NULL: the client does not retry after -EBUSY */
	bool probe; /* query only: no session is opened, and link->welcome is an Account */
	bool full;  /* the daemon refused the session temporarily: a retry may succeed */
	/* Socket that is being connected for lane 0 while the daemon processes Hello; -1: none. */
	int ahead_fd;
	/* The connection for lane 0, once it is established; NULL: none. */
	struct gp_conn *ahead;
	uint64_t ahead_ns; /* time when connecting `ahead` started */
};

/* Returns the smaller of GPC_OPENING_MS and GPUPOOL_TIMEOUT, in milliseconds. */
int gpc_opening_limit_ms(void);

/* Sets the error for a daemon that has sent nothing within gpc_opening_limit_ms(): its machine does
 * not acknowledge data; or, if it does, the reason in `otherwise`. Returns GP_E_TIMEOUT. */
int gpc_opening_fail_timeout(struct gpc_opening *opening, const struct gp_conn *conn,
			     const char *otherwise);

/* Sets the error to the daemon's address followed by the text, a printf() format. Returns r. */
int gpc_opening_fail(struct gpc_opening *opening, int r, const char *text, ...) GP_PRINTF(3, 4);

/* Opens a connection and sends the preamble with it. Waits at most opening->connect_ms. On success
 * the caller owns *conn_p. */
GP_MUST_CHECK int gpc_opening_connect(struct gpc_opening *opening, const struct gp_url *url,
				      const struct gp_preamble *preamble, struct gp_conn **conn_p);

/* Returns whether connections to this address use TLS after the preamble. */
bool gpc_url_wants_tls(const struct gp_url *url);
/* Returns whether connections to this address use RDMA, or may use it (rdma+tcp). */
bool gpc_url_wants_rdma(const struct gp_url *url);
/* Returns whether the address is a local socket, over which shared memory can be passed, and shared
 * memory is enabled (GPUPOOL_SHM). */
bool gpc_url_wants_shm(const struct gp_url *url);

/* Opens the control connection, and receives and validates the Welcome; stores both in *link. Waits
 * at most GPC_WELCOME_MS for the Welcome. Defined in control_connection.c. */
GP_MUST_CHECK int gpc_control_connection_open(struct gpc_opening *opening, struct gpc_link *link);
/* Receives the next message of the daemon, which must be of this kind; waits at most
 * GPC_WELCOME_MS. On success the caller frees *message_p with gp_control_free(). A refusal by the
 * daemon returns GP_E_UNSUPPORTED and sets opening->full if a retry may succeed; any other message
 * returns GP_E_INVALID. */
GP_MUST_CHECK int gpc_opening_recv_message(struct gpc_opening *opening, struct gp_conn *conn,
					   Gpupool__ControlMessage__BodyCase wanted,
					   Gpupool__ControlMessage **message_p);

/* Reserves the session's window in this process. If it is not free here, requests others from the
 * daemon, up to four times, and updates link->facts. Returns GP_E_RESOURCE if there is none.
 * Defined in window_request.c. */
GP_MUST_CHECK int gpc_link_reserve_window(struct gpc_opening *opening, struct gpc_link *link);

/* Starts connecting lane 0 ahead of time over the same route as `control`, without waiting, if
 * connecting takes time. Has no effect on failure. Defined in lane_connect.c, as are the next three
 * functions. */
void gpc_first_lane_connect_start(struct gpc_opening *opening, const struct gp_conn *control);
/* Waits for the connection of gpc_first_lane_connect_start(), at most gpc_opening_limit_ms(). On
 * failure there is none, and gpc_first_lane_open() connects again. */
void gpc_first_lane_connect_finish(struct gpc_opening *opening, const struct gp_conn *control);
/* Opens lane 0, over the connection made ahead of time if that is usable, and sets link->lanes_url
 * for the other lanes. */
GP_MUST_CHECK int gpc_first_lane_open(struct gpc_opening *opening, struct gpc_link *link);
/* Closes the connection made ahead of time, if there is one. */
void gpc_first_lane_drop(struct gpc_opening *opening);

#endif /* GPC_OPENING_H */
