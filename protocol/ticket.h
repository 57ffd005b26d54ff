/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made of a session's ticket where lanes are encrypted (wire.md, 8): the ticket itself is
 * only told inside TLS.  Plain values; any thread.
 */
#ifndef GP_TICKET_H
#define GP_TICKET_H

#include "protocol/preamble.h"

#include <stdbool.h>

#define GP_TICKET_KEY_SIZE 32

/* What the preamble of a lane has in its place. */
void gp_ticket_derive_name(const uint8_t ticket[GP_TICKET_SIZE], uint8_t name[GP_TICKET_SIZE]);

/* The key of the handshake of this lane. */
void gp_ticket_derive_key(const uint8_t ticket[GP_TICKET_SIZE], uint16_t lane,
			  uint8_t key[GP_TICKET_KEY_SIZE]);

/* Tickets, or their names.  Takes the same time for every one. */
bool gp_ticket_equals(const uint8_t a[GP_TICKET_SIZE], const uint8_t b[GP_TICKET_SIZE]);

#endif /* GP_TICKET_H */
