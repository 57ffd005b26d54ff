/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session that is being opened, for the files of client/connect only: what is wanted, and where
 * to say what goes wrong.  By one thread, which owns it.
 */
#ifndef GPC_OPENING_H
#define GPC_OPENING_H

#include "client/connect/connect.h"
#include "client/connect/credentials.h"
#include "protocol/token_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For connecting, and for the daemon's first bytes: less if GPUPOOL_TIMEOUT is. */
#define GPC_OPENING_MS 10000
/* Longer than the daemon lets a client wait for a worker, so that its reason is what is said. */
#define GPC_WELCOME_MS 60000
/* What this end can do besides. */
#define GPC_FEATURES ((uint64_t)GP_FEATURE_SPREAD | GP_FEATURE_LZ4 | GP_FEATURE_LATE)

struct gpc_opening {
	const struct gp_url *url;
	struct gp_url control; /* where its control connection goes */
	int connect_ms;
	const int32_t *devices;
	int device_count;
	struct gpc_credentials credentials;
	bool has_token;
	struct gp_token token;
	char text[GP_URL_TEXT_MAX];
	char *error;
	size_t error_size;
	const struct gpc_admission_wait *waiting; /* NULL: it does not */
	bool probe; /* no session is wanted, only what the daemon says of it: link->welcome is an
		     * Account then */
	bool full;  /* refused for now: later there may be a place */
	/* For lane 0: a connection that is made while the daemon answers Hello; -1 and NULL: none.
	 */
	int ahead_fd;
	struct gp_conn *ahead;
	uint64_t ahead_ns; /* when it was begun */
};

/* GPC_OPENING_MS or GPUPOOL_TIMEOUT. */
int gpc_opening_limit_ms(void);

/* The daemon has sent nothing within gpc_opening_limit_ms(): writes why, `otherwise` if its machine
 * acknowledges.  Returns GP_E_TIMEOUT. */
int gpc_opening_fail_timeout(struct gpc_opening *opening, const struct gp_conn *conn,
			     const char *otherwise);

/* Writes what is wrong behind the daemon's address.  Returns r. */
int gpc_opening_fail(struct gpc_opening *opening, int r, const char *text, ...) GP_PRINTF(3, 4);

/* The preamble of the connection goes out with it. */
GP_MUST_CHECK int gpc_opening_connect(struct gpc_opening *opening, const struct gp_url *url,
				      const struct gp_preamble *preamble, struct gp_conn **conn_p);

/* Whether connections to this address begin with TLS behind their preambles. */
bool gpc_url_wants_tls(const struct gp_url *url);
bool gpc_url_wants_rdma(const struct gp_url *url);
/* Over a local socket, which memory can come over. */
bool gpc_url_wants_shm(const struct gp_url *url);

/* greeting.c: the control connection up to a Welcome that makes sense. */
GP_MUST_CHECK int gpc_control_connection_open(struct gpc_opening *opening, struct gpc_link *link);
/* The next message of the daemon, if it is of this kind. */
GP_MUST_CHECK int gpc_opening_recv_message(struct gpc_opening *opening, struct gp_conn *conn,
					   Gpupool__ControlMessage__BodyCase wanted,
					   Gpupool__ControlMessage **message_p);

/* window_request.c: reserves the window, or another one that the daemon has. */
GP_MUST_CHECK int gpc_link_reserve_window(struct gpc_opening *opening, struct gpc_link *link);

/* first_lane.c: begins to connect the first lane, if that takes time; when the Welcome may be about
 * to come, waits for it; opens the lane, and says where the others will be. */
void gpc_first_lane_connect_start(struct gpc_opening *opening, const struct gp_conn *control);
void gpc_first_lane_connect_finish(struct gpc_opening *opening, const struct gp_conn *control);
GP_MUST_CHECK int gpc_first_lane_open(struct gpc_opening *opening, struct gpc_link *link);
/* It is not wanted any more; there need not be one. */
void gpc_first_lane_drop(struct gpc_opening *opening);

#endif /* GPC_OPENING_H */
