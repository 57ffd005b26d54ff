/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values derived from a session's ticket for encrypted lanes (wire.md, 8). The ticket is the secret
 * that identifies a session; it is itself sent only inside TLS.
 *
 * Ownership: plain values; results that are secret are erased by the caller.
 * Threads: any; pure functions.
 */
#ifndef GP_TICKET_H
#define GP_TICKET_H

#include "protocol/preamble.h"

#include <stdbool.h>

/* Size of a lane's pre-shared key, in bytes. */
#define GP_TICKET_KEY_SIZE 32

/* Derives the ticket's public ID, which a lane's preamble contains instead of the ticket. */
void gp_ticket_derive_name(const uint8_t ticket[GP_TICKET_SIZE], uint8_t name[GP_TICKET_SIZE]);

/* Derives the pre-shared key of the TLS handshake of the lane with this number. */
void gp_ticket_derive_key(const uint8_t ticket[GP_TICKET_SIZE], uint16_t lane,
			  uint8_t key[GP_TICKET_KEY_SIZE]);

/* Returns whether two tickets or two public IDs are equal, in constant time. */
bool gp_ticket_equals(const uint8_t a[GP_TICKET_SIZE], const uint8_t b[GP_TICKET_SIZE]);

#endif /* GP_TICKET_H */
