/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values derived from a session's ticket for encrypted lanes (wire.md, 8); the ticket itself is
 * sent only inside TLS.
 *
 * Threads: any; pure functions.
 */
#ifndef GP_TICKET_H
#define GP_TICKET_H

#include "protocol/preamble.h"

#include <stdbool.h>

#define GP_TICKET_KEY_SIZE 32

/* Derives the ticket's name, which a lane's preamble contains instead of the ticket. */
void gp_ticket_derive_name(const uint8_t ticket[GP_TICKET_SIZE], uint8_t name[GP_TICKET_SIZE]);

/* Derives the pre-shared key of a lane's TLS handshake. */
void gp_ticket_derive_key(const uint8_t ticket[GP_TICKET_SIZE], uint16_t lane,
			  uint8_t key[GP_TICKET_KEY_SIZE]);

/* Compares two tickets or two names, in constant time. */
bool gp_ticket_equals(const uint8_t a[GP_TICKET_SIZE], const uint8_t b[GP_TICKET_SIZE]);

#endif /* GP_TICKET_H */
