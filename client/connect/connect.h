/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session setup: connects to a daemon of REMOTE_GPU, authenticates, and opens the session's
 * connections: preamble, Hello, Welcome, window, lane 0. Everything that the daemon sends is
 * validated.
 *
 * A session has one control connection and up to GP_LANES_MAX lanes (protocol/frame.h). Lane 0
 * carries its calls, the others (data lanes) the bytes of large copies. Its window is its range of
 * device addresses (window.h).
 *
 * Ownership: on success the caller owns what is in struct gpc_link, and calls gpc_link_fini() and
 * gpc_window_release() (window.h). On failure nothing is left open or reserved, and the struct is
 * empty, except where noted.
 * Threads: any thread may call. gpc_session_open() (client/entry/init.h) opens the sessions, on one
 * thread at a time.
 * Errors: functions that return an int return 0, a negative errno or a GP_E_* code. After an error,
 * `error` contains a text for the user, which usually begins with the daemon's address.
 */
#ifndef GPC_CONNECT_H
#define GPC_CONNECT_H

#include "client/connect/welcome.h"
#include "protocol/control.h"
#include "protocol/pack.h"
#include "protocol/preamble.h"
#include "transport/transport.h"

#include <stddef.h>

/* Maximum number of devices of one session, and of all sessions of the process together. */
#define GPC_DEVICES_MAX 64

/* An opened session, before it becomes a struct gpc_session (client/session/session.h). */
struct gpc_link {
	/* control connection, and lane 0; owned; NULL: the caller has taken it over, or *link is
	 * empty */
	struct gp_conn *control;
	struct gp_conn *lane;
	Gpupool__ControlMessage *welcome; /* the daemon's Welcome (body_case is WELCOME); owned,
					     like the connections */
	struct gp_url lanes_url;          /* address for gpc_link_open_lane() */
	/* from the Welcome, with the window that is reserved */
	struct gpc_session_facts facts;
	/* maximum number of calls in flight that expect a reply */
	unsigned int max_outstanding;
	uint64_t round_trip_ns; /* round-trip time of the network: from sending the first bytes to
				   the daemon's preamble, which it sends without doing any work */
	unsigned int lanes; /* maximum number of lanes, including lane 0; 1 if the daemon does not
			       support data lanes */
	/* GPUPOOL_COMPRESSION */
	enum gp_pack_mode compression;
	bool lanes_exact; /* the user set the number of lanes, so it is not adapted to the link */
};

/* Parameters of a client that retries after -EBUSY; sent in Hello. */
struct gpc_admission_wait {
	uint64_t number;      /* random number that identifies the client in the daemon's admission
				 queue; never 0 */
	uint32_t max_wait_ms; /* maximum time by which the daemon may delay its reply to Hello */
};

/*
 * Opens a session with the daemon at this address, and reserves its window in this process.
 * devices: the daemon's numbers of the requested devices; device_count 0: all devices. waiting:
 * NULL: the caller does not retry. Blocks: at most 10 s, or GPUPOOL_TIMEOUT if that is shorter, for
 * each connection and each TLS handshake; at most 60 s for each message of the daemon.
 * Errors: -EBUSY: the daemon has no session slot or is shutting down, so a retry may succeed;
 * GP_E_UNSUPPORTED: it refused the session for another reason, or offers no TLS or RDMA;
 * GP_E_FOREIGN: it is not a gpupool daemon; GP_E_VERSION: it speaks another protocol; GP_E_TIMEOUT;
 * GP_E_INVALID: a variable, a credential or a message of the daemon is invalid; GP_E_RESOURCE: no
 * window is free, or the process may not reserve one; -ENOMEM; other errors of connections
 * (transport/transport.h).
 */
GP_MUST_CHECK int gpc_link_open(const struct gp_url *url, const int32_t *devices, int device_count,
				const struct gpc_admission_wait *waiting, struct gpc_link *link,
				char *error, size_t error_size);
/*
 * Calls gpc_link_open(), and retries for the time that GPUPOOL_WAIT allows (0: no retries): after
 * -EBUSY; after a refused connection, during the first 30 s; and, once the daemon has replied
 * -EBUSY, after any failure that its restart may cause. Reports by gpc_log_warn()
 * (client/base/log.h) why it waits. The daemon queues waiting clients
 * (server/supervisor/tenancy/queue.h) and delays its reply, so that a free session slot is given to
 * the client that has waited longest. Returns GP_E_INVALID, with *link unchanged, if GPUPOOL_WAIT
 * is invalid.
 */
GP_MUST_CHECK int gpc_link_open_retrying(const struct gp_url *url, const int32_t *devices,
					 int device_count, struct gpc_link *link, char *error,
					 size_t error_size);
/*
 * Queries the daemon's description of itself and of this user's tenant, without opening a session.
 * Blocks as gpc_link_open() does, with the same errors except -EBUSY and GP_E_RESOURCE. On success
 * *message_p has body_case ACCOUNT; the caller frees it with gp_control_free(), and must make its
 * texts printable before output (protocol/printable.h). On failure *message_p is unchanged.
 */
GP_MUST_CHECK int gpc_link_probe(const struct gp_url *url, Gpupool__ControlMessage **message_p,
				 char *error, size_t error_size);
/* Opens a data lane of a session, authenticated by the session's ticket. url: lanes_url of struct
 * gpc_link; ticket: that of the Welcome; lane: number of the lane, from 1. Blocks at most 10 s, or
 * GPUPOOL_TIMEOUT if that is shorter, for the connection, and as long for the TLS handshake. On
 * success the caller owns *conn_p; on failure it must not be used. */
GP_MUST_CHECK int gpc_link_open_lane(const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE],
				     unsigned int lane, struct gp_conn **conn_p, char *error,
				     size_t error_size);
/* Closes the connections and frees the Welcome; *link becomes empty (zeroed). Accepts an empty
 * *link. A caller that takes over a connection or the Welcome sets the member to NULL before. The
 * window stays reserved, until gpc_window_release() (window.h). */
void gpc_link_fini(struct gpc_link *link);

/* Returns whether a window from the network is valid: not NULL, not empty, aligned to the
 * granularity, and below 2^47. granularity: not 0. Defined in welcome.c. */
bool gpc_window_is_valid(const Gpupool__Window *window, uint64_t granularity);

/* Validates what the client uses of a Welcome without a bound of its own: granularity, heap size,
 * window, ticket, granted memory, and the devices, of which there must be at most GPC_DEVICES_MAX.
 * Returns 0 with *what_p NULL, or GP_E_INVALID with *what_p set to the name of the invalid part, a
 * static text. Defined in welcome.c. */
GP_MUST_CHECK int gpc_welcome_check(const Gpupool__Welcome *welcome, const char **what_p);

#endif /* GPC_CONNECT_H */
