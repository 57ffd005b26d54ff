/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preamble: the first 64 bytes of every connection to gpupoold, unencrypted on every transport. It
 * identifies the connection to the supervisor as a control connection or as a lane, a data
 * connection to be passed to a worker (protocol/wire.md, 2).
 *
 * Encoding and decoding only: the client passes the bytes to gp_connect(); the supervisor receives
 * them with gp_conn_recv_preamble() and replies on a control connection (never on a lane) with
 * gp_conn_send_preamble().
 *
 * Ownership: plain values.
 * Threads: any; pure functions.
 */
#ifndef GP_PREAMBLE_H
#define GP_PREAMBLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GP_PREAMBLE_SIZE 64
#define GP_TICKET_SIZE 32
/* Peers with different major versions disconnect; the minor version is informative. */
#define GP_VERSION_MAJOR 1
#define GP_VERSION_MINOR 0

enum gp_preamble_kind {
	GP_PREAMBLE_CONTROL = 0, /* messages of control.proto follow */
	GP_PREAMBLE_LANE = 1,    /* a lane of the session that the ticket identifies */
	/* Control connection inside TLS, whose handshake follows the preamble. */
	GP_PREAMBLE_CONTROL_TLS = 2,
	GP_PREAMBLE_LANE_TLS = 3,
	/* A lane in shared memory, whose descriptor the worker sends over this socket. */
	GP_PREAMBLE_LANE_SHM = 4,
};

struct gp_preamble {
	uint16_t major;
	uint16_t minor;
	uint16_t kind; /* enum gp_preamble_kind */
	uint16_t lane; /* number of the lane, 0 (the call stream) or higher; 0 for a control
			  connection */
	/* The session's secret ticket, from its Welcome message. In GP_PREAMBLE_LANE_TLS: the
	 * ticket's public ID (gp_ticket_derive_name() in ticket.h). Zeros for a control
	 * connection. */
	uint8_t ticket[GP_TICKET_SIZE];
};

/* Fills in this end's version, the kind and the lane, and a zero ticket. */
void gp_preamble_init(struct gp_preamble *preamble, enum gp_preamble_kind kind, uint16_t lane);

/* Returns whether the kind is a control connection, with or without TLS. */
bool gp_preamble_is_control(const struct gp_preamble *preamble);
/* Returns whether a TLS handshake follows; false for unknown kinds. */
bool gp_preamble_is_tls(const struct gp_preamble *preamble);

void gp_preamble_encode(const struct gp_preamble *preamble, uint8_t bytes[GP_PREAMBLE_SIZE]);

/*
 * Decodes a preamble, which comes from the network. Returns 0; GP_E_FOREIGN: gpupool's magic is
 * missing, and *preamble is unchanged; GP_E_VERSION: another major version; GP_E_INVALID: unknown
 * kind, reserved bytes that are not zero, or a control connection with a lane or a ticket. After
 * the last two, only major and minor are set. The caller checks the lane's number and the ticket.
 */
GP_MUST_CHECK int gp_preamble_decode(const uint8_t bytes[GP_PREAMBLE_SIZE],
				     struct gp_preamble *preamble);

/* Formats the result of gp_preamble_decode() as a message for the user of the client. status: the
 * result; 0 gives the peer's version. preamble: as set by gp_preamble_decode(). */
void gp_preamble_format_status(int status, const struct gp_preamble *preamble, char *text,
			       size_t size);

#endif /* GP_PREAMBLE_H */
