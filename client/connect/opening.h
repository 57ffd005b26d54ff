/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a session that is being opened: parameters, and the buffer for the error. Internal to
 * client/connect.
 *
 * Ownership: created and owned by the functions in connect.c and lane_connect.c.
 * Threads: one thread per opening.
 * Errors: as in connect.h; on failure opening->error is set.
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
/* Longer than the daemon's own limit for starting a worker, so that its reason for a refusal is
 * reported. */
#define GPC_WELCOME_MS 60000
/* Optional features that this client supports. */
#define GPC_FEATURES ((uint64_t)GP_FEATURE_SPREAD | GP_FEATURE_LZ4 | GP_FEATURE_LATE)

struct gpc_opening {
	const struct gp_url *url;
	struct gp_url control; /* address for its control connection */
	int connect_ms;
	const int32_t *devices;
	int device_count;
	struct gpc_credentials credentials;
	bool has_token;
	struct gp_token token;
	char text[GP_URL_TEXT_MAX];
	char *error;
	size_t error_size;
	const struct gpc_admission_wait *waiting; /* NULL: the client does not retry */
	bool probe; /* query only: no session is opened, and link->welcome is an Account */
	bool full;  /* refused temporarily: a retry may succeed */
	/* Connection for lane 0 that is opened while the daemon processes Hello; -1 and NULL:
	 * none. */
	int ahead_fd;
	struct gp_conn *ahead;
	uint64_t ahead_ns; /* time when connecting started */
};

/* Returns the smaller of GPC_OPENING_MS and GPUPOOL_TIMEOUT. */
int gpc_opening_limit_ms(void);

/* Reports that the daemon has sent nothing within gpc_opening_limit_ms(), and why: its machine does
 * not acknowledge; or, if it does, `otherwise`. Returns GP_E_TIMEOUT. */
int gpc_opening_fail_timeout(struct gpc_opening *opening, const struct gp_conn *conn,
			     const char *otherwise);

/* Sets the error to the daemon's address followed by the text. Returns r. */
int gpc_opening_fail(struct gpc_opening *opening, int r, const char *text, ...) GP_PRINTF(3, 4);

/* Opens a connection; the preamble is sent with it. */
GP_MUST_CHECK int gpc_opening_connect(struct gpc_opening *opening, const struct gp_url *url,
				      const struct gp_preamble *preamble, struct gp_conn **conn_p);

/* Return whether connections to this address use TLS after the preamble, or RDMA. */
bool gpc_url_wants_tls(const struct gp_url *url);
bool gpc_url_wants_rdma(const struct gp_url *url);
/* Returns whether the address is a local socket, over which shared memory can be passed, and shared
 * memory is enabled. */
bool gpc_url_wants_shm(const struct gp_url *url);

/* control_connection.c: opens the control connection, and receives and validates the Welcome. */
GP_MUST_CHECK int gpc_control_connection_open(struct gpc_opening *opening, struct gpc_link *link);
/* Receives the next message of the daemon, which must be of this kind. A refusal or any other
 * message is reported as an error. */
GP_MUST_CHECK int gpc_opening_recv_message(struct gpc_opening *opening, struct gp_conn *conn,
					   Gpupool__ControlMessage__BodyCase wanted,
					   Gpupool__ControlMessage **message_p);

/* window_request.c: reserves the session's window here, or requests another window from the
 * daemon. */
GP_MUST_CHECK int gpc_link_reserve_window(struct gpc_opening *opening, struct gpc_link *link);

/* lane_connect.c: start() starts connecting lane 0 ahead of time, if connecting takes time;
 * finish() waits for the connection when the Welcome is due; open() opens lane 0 and sets the
 * address for the other lanes. */
void gpc_first_lane_connect_start(struct gpc_opening *opening, const struct gp_conn *control);
void gpc_first_lane_connect_finish(struct gpc_opening *opening, const struct gp_conn *control);
GP_MUST_CHECK int gpc_first_lane_open(struct gpc_opening *opening, struct gpc_link *link);
/* Closes the connection made ahead of time, if there is one. */
void gpc_first_lane_drop(struct gpc_opening *opening);

#endif /* GPC_OPENING_H */
