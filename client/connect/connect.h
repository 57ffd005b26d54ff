/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session setup: connects to a daemon of REMOTE_GPU, authenticates, and opens the session's
 * connections (preamble, Hello, Welcome, window, first lane). Everything that the daemon sends is
 * validated.
 *
 * Ownership: the caller owns a struct gpc_link and calls gpc_link_fini(); on failure nothing is
 * left open.
 * Threads: one thread, in cuInit(); gpc_link_open_lane(): any thread.
 * Errors: the functions return 0, a negative errno or a GP_E_* code; the text in `error` begins
 * with the daemon's address.
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

/* An opened session, before it becomes a struct gpc_session. */
struct gpc_link {
	struct gp_conn *control;
	struct gp_conn *lane;
	Gpupool__ControlMessage *welcome; /* body_case is WELCOME */
	struct gp_url lanes_url;          /* address for its lanes */
	struct gpc_session_facts facts;
	unsigned int max_outstanding;
	uint64_t round_trip_ns; /* from sending the first bytes to their reply, which the daemon
				   sends without doing any work */
	unsigned int lanes;     /* maximum number of lanes, including lane 0 */
	enum gp_pack_mode compression;
	bool lanes_exact; /* the user set the number of lanes: do not adapt it to the link */
};

/* Parameters of a client that retries after -EBUSY. */
struct gpc_admission_wait {
	uint64_t number;      /* identifies the client in the daemon's admission queue */
	uint32_t max_wait_ms; /* the daemon may delay its reply to Hello by up to this */
};

/*
 * Opens a session with the daemon at this address, for these of its devices (none: all). waiting:
 * NULL if the caller does not retry.
 * Errors: -EBUSY: the daemon has no session slot or does not admit sessions at the moment.
 */
GP_MUST_CHECK int gpc_link_open(const struct gp_url *url, const int32_t *devices, int device_count,
				const struct gpc_admission_wait *waiting, struct gpc_link *link,
				char *error, size_t error_size);
/*
 * Like gpc_link_open(), but retries for the time that GPUPOOL_WAIT allows after -EBUSY, and while
 * the connection is refused because the daemon is restarting. Reports on standard error why it
 * waits. The daemon queues waiting clients (supervisor/tenancy/queue.h) and usually delays its
 * reply, so that a free session slot goes to the first of them.
 */
GP_MUST_CHECK int gpc_link_open_retrying(const struct gp_url *url, const int32_t *devices,
					 int device_count, struct gpc_link *link, char *error,
					 size_t error_size);
/*
 * Queries the daemon's description of itself and of this user's tenant, without opening a session.
 * On success *message_p has body_case ACCOUNT; the caller frees it with gp_control_free(). Its
 * texts are not sanitized: make them printable before output. *round_trip_ns_p is as in struct
 * gpc_link.
 */
GP_MUST_CHECK int gpc_link_probe(const struct gp_url *url, Gpupool__ControlMessage **message_p,
				 uint64_t *round_trip_ns_p, char *error, size_t error_size);
/* Opens another lane of a session, authenticated by its ticket. */
GP_MUST_CHECK int gpc_link_open_lane(const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE],
				     unsigned int lane, struct gp_conn **conn_p, char *error,
				     size_t error_size);
/* Closes the connections and frees the Welcome. The caller sets those that it has taken over to
 * NULL. The window stays reserved. */
void gpc_link_fini(struct gpc_link *link);

/* Returns whether the window is valid: aligned to the granularity and within the address space. */
bool gpc_window_is_valid(const Gpupool__Window *window, uint64_t granularity);

/* Validates a Welcome. Returns GP_E_INVALID and stores the name of the invalid part in *what_p. */
GP_MUST_CHECK int gpc_welcome_check(const Gpupool__Welcome *welcome, const char **what_p);

#endif /* GPC_CONNECT_H */
