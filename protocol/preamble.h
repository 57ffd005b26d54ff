/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 64 bytes that every connection to gpupoold begins with, in clear on every transport: what
 * the supervisor needs to know to keep the connection or to hand it to a worker.
 *
 * Plain values and no I/O: a client gives the bytes to gp_connect(), the daemon takes them with
 * gp_conn_recv_preamble(), answers a control connection (never a lane) with
 * gp_conn_send_preamble().
 */
#ifndef GP_PREAMBLE_H
#define GP_PREAMBLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_PREAMBLE_SIZE 64
#define GP_TICKET_SIZE 32
/* A difference in the major version ends the connection, one in the minor is information. */
#define GP_VERSION_MAJOR 1
#define GP_VERSION_MINOR 0

enum gp_preamble_kind {
	GP_PREAMBLE_CONTROL = 0,     /* control.proto follows */
	GP_PREAMBLE_LANE = 1,        /* the call stream of the session that owns the ticket */
	GP_PREAMBLE_CONTROL_TLS = 2, /* the same two inside TLS, whose handshake follows */
	GP_PREAMBLE_LANE_TLS = 3,
	GP_PREAMBLE_LANE_SHM = 4, /* a lane through memory, which the daemon sends over it */
};

struct gp_preamble {
	uint16_t major;
	uint16_t minor;
	uint16_t kind; /* of enum gp_preamble_kind */
	uint16_t lane; /* 0, the call stream's own, up to the session's limit */
	/* Out of Welcome; of LANE_TLS not the ticket but its name; zero for a control connection.
	 */
	uint8_t ticket[GP_TICKET_SIZE];
};

/* This side's version, no ticket. */
void gp_preamble_init(struct gp_preamble *preamble, enum gp_preamble_kind kind, uint16_t lane);

/* Of a control connection, of a TLS one: false for any other kind. */
bool gp_preamble_is_control(const struct gp_preamble *preamble);
bool gp_preamble_is_tls(const struct gp_preamble *preamble);

void gp_preamble_encode(const struct gp_preamble *preamble, uint8_t bytes[GP_PREAMBLE_SIZE]);

/*
 * GP_E_FOREIGN: not gpupool's magic.  GP_E_VERSION: another major version; only major and minor
 * are written.  GP_E_INVALID: our version but an unknown kind, or bytes set that must be zero.
 */
GP_MUST_CHECK int gp_preamble_decode(const uint8_t bytes[GP_PREAMBLE_SIZE],
				     struct gp_preamble *preamble);

/* What gp_preamble_decode() returned, as words for the person at the other end's keyboard. */
void gp_preamble_format_status(int status, const struct gp_preamble *preamble, char *text,
			       size_t size);

#endif /* GP_PREAMBLE_H */
