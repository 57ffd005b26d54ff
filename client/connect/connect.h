/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session setup: connects to a daemon of REMOTE_GPU, authenticates, and opens the session's
 * connections (preamble, Hello, Welcome, window, first lane). Everything that the daemon sends is
 * validated.
 *
 * A session has one control connection and up to 16 lanes, which are its data connections. Its
 * window is its range of device addresses (window.h).
 *
 * Ownership: on success the caller owns a struct gpc_link and calls gpc_link_fini(). On failure
 * nothing is left open or reserved, and the struct is empty.
 * Threads: any; the session is opened by one thread at a time, in cuInit(). gpc_link_open_lane()
 * may be called by several threads.
 * Errors: the functions return 0, a negative errno or a GP_E_* code; `error` then contains a text
 * for the user, usually beginning with the daemon's address.
 */
#ifndef GPC_CONNECT_H
#define GPC_CONNECT_H

#include "client/connect/welcome.h"
#include "protocol/control.h"
#include "protocol/pack.h"
#include "protocol/preamble.h"
#include "transport/transport.h"

#include <stddef.h>

#define GPC_DEVICES_MAX 64

/* An opened session, before it becomes a struct gpc_session (client/session/session.h). */
struct gpc_link {
	/* control connection, and lane 0; owned */
	struct gp_conn *control;
	struct gp_conn *lane;
	Gpupool__ControlMessage *welcome; /* the daemon's Welcome (body_case is WELCOME), owned */
	struct gp_url lanes_url;          /* address for further lanes */
	struct gpc_session_facts facts;
	/* maximum number of calls that wait for a reply */
	unsigned int max_outstanding;
	uint64_t round_trip_ns; /* time from sending the first bytes to their reply, which the
				   daemon sends without doing any work */
	unsigned int lanes;     /* maximum number of lanes, including lane 0 */
	enum gp_pack_mode compression;
	bool lanes_exact; /* the user set the number of lanes, so it is not adapted to the link */
};

/* Parameters of a client that retries after -EBUSY. */
struct gpc_admission_wait {
	uint64_t number;      /* random number that identifies the client in the daemon's admission
				 queue; never 0 */
	uint32_t max_wait_ms; /* maximum time by which the daemon may delay its reply to Hello */
};

/*
 * Opens a session with the daemon at this address, for device_count of its devices (0: all).
 * waiting: NULL if the caller does not retry. Waits for the connections at most 10 s each and for
 * the Welcome at most 60 s; shorter if GPUPOOL_TIMEOUT is.
 * Errors: -EBUSY: the daemon has no session slot or does not admit sessions at the moment, so a
 * retry may succeed.
 */
GP_MUST_CHECK int gpc_link_open(const struct gp_url *url, const int32_t *devices, int device_count,
				const struct gpc_admission_wait *waiting, struct gpc_link *link,
				char *error, size_t error_size);
/*
 * Calls gpc_link_open(), and retries for the time that GPUPOOL_WAIT allows after -EBUSY, and while
 * the connection is refused because the daemon is restarting. Reports on standard error why it
 * waits. The daemon queues waiting clients (supervisor/tenancy/queue.h) and usually delays its
 * reply, so that a free session slot is given to the first of them.
 */
GP_MUST_CHECK int gpc_link_open_retrying(const struct gp_url *url, const int32_t *devices,
					 int device_count, struct gpc_link *link, char *error,
					 size_t error_size);
/*
 * Queries the daemon's description of itself and of this user's tenant, without opening a session.
 * On success *message_p has body_case ACCOUNT; the caller frees it with gp_control_free(). Its
 * texts are not sanitized: make them printable before output. *round_trip_ns_p is as in struct
 * gpc_link. On failure both outputs are unchanged.
 */
GP_MUST_CHECK int gpc_link_probe(const struct gp_url *url, Gpupool__ControlMessage **message_p,
				 uint64_t *round_trip_ns_p, char *error, size_t error_size);
/* Opens another lane of a session, authenticated by the session's ticket. lane: its number, from 1.
 * Waits at most 10 s for the connection. On success the caller owns *conn_p; on failure it must not
 * be used. */
GP_MUST_CHECK int gpc_link_open_lane(const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE],
				     unsigned int lane, struct gp_conn **conn_p, char *error,
				     size_t error_size);
/* Closes the connections and frees the Welcome; *link becomes empty. A caller that takes over a
 * connection or the Welcome first sets the member to NULL. The window stays reserved;
 * gpc_window_release() releases it. */
void gpc_link_fini(struct gpc_link *link);

/* Returns whether the window is valid: not NULL, aligned to the granularity and within the address
 * space. */
bool gpc_window_is_valid(const Gpupool__Window *window, uint64_t granularity);

/* Validates a Welcome. Returns 0, or GP_E_INVALID with *what_p set to the name of the invalid part,
 * a static text. */
GP_MUST_CHECK int gpc_welcome_check(const Gpupool__Welcome *welcome, const char **what_p);

#endif /* GPC_CONNECT_H */
