/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From REMOTE_GPU to the connections of a session: preamble, Hello, Welcome, window, lane.  Nothing
 * that the daemon says is believed unchecked.  By one thread, in cuInit.
 */
#ifndef GPC_CONNECT_H
#define GPC_CONNECT_H

#include "client/connect/facts.h"
#include "protocol/control.h"
#include "protocol/pack.h"
#include "protocol/preamble.h"
#include "transport/transport.h"

#include <stddef.h>

#define GPC_DEVICES_MAX 64

/* An opened session, not yet a struct gpc_session. */
struct gpc_link {
	struct gp_conn *control;
	struct gp_conn *lane;
	Gpupool__ControlMessage *welcome; /* body_case is WELCOME */
	struct gp_url lanes_url;          /* where its lanes are */
	struct gpc_session_facts facts;
	unsigned int max_outstanding;
	uint64_t round_trip_ns; /* until the answer to the first bytes, for which nothing is done */
	unsigned int lanes;     /* that there may be, lane 0 included */
	enum gp_pack_mode compression;
	bool lanes_exact; /* the user wants so many, whatever suits the link */
};

/* Of a client that asks again after -EBUSY. */
struct gpc_admission_wait {
	uint64_t number;      /* by which the daemon knows it, and queues it */
	uint32_t max_wait_ms; /* the daemon may keep the question for so long */
};

/*
 * A session with the daemon of this address, for these devices of it (none: all).  0, a negative
 * errno or a GP_E_*; then error says what is wrong in words that begin with the daemon's address,
 * and nothing is left open.  -EBUSY: the daemon has no place at the moment, or admits nobody just
 * now.  waiting: NULL: it does not ask again.
 */
GP_MUST_CHECK int gpc_link_open(const struct gp_url *url, const int32_t *devices, int device_count,
				const struct gpc_admission_wait *waiting, struct gpc_link *link,
				char *error, size_t error_size);
/*
 * The same, but for as long as GPUPOOL_WAIT says it asks again after -EBUSY, or while nobody
 * listens as the daemon is being started anew, and standard error says what it waits for.  The
 * daemon keeps a queue of those who ask (supervisor/tenancy/queue.h), and mostly their questions,
 * too: a place that becomes free is the first one's.
 */
GP_MUST_CHECK int gpc_link_open_retrying(const struct gp_url *url, const int32_t *devices,
					 int device_count, struct gpc_link *link, char *error,
					 size_t error_size);
/*
 * No session: what the daemon says of itself and of this user's tenant.  *message_p: its body_case
 * is ACCOUNT, its texts are the daemon's and not made printable; to be freed with
 * gp_control_free(). *round_trip_ns_p: until the answer to the first bytes.  As above.
 */
GP_MUST_CHECK int gpc_link_probe(const struct gp_url *url, Gpupool__ControlMessage **message_p,
				 uint64_t *round_trip_ns_p, char *error, size_t error_size);
/* Another lane of a session, with its ticket.  As above. */
GP_MUST_CHECK int gpc_link_open_lane(const struct gp_url *url, const uint8_t ticket[GP_TICKET_SIZE],
				     unsigned int lane, struct gp_conn **conn_p, char *error,
				     size_t error_size);
/* Connections that are NULL now belong to somebody else.  The window stays reserved. */
void gpc_link_fini(struct gpc_link *link);

/* Whether there can be such a window. */
bool gpc_window_is_valid(const Gpupool__Window *window, uint64_t granularity);

/* Whether a Welcome makes sense; else GP_E_INVALID and what does not. */
GP_MUST_CHECK int gpc_welcome_check(const Gpupool__Welcome *welcome, const char **what_p);

#endif /* GPC_CONNECT_H */
