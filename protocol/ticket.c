/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/ticket.h"

#include "base/sha256.h"

#include <endian.h>
#include <string.h>

static const char name_label[] = "gpupool ticket name";
static const char key_label[] = "gpupool lane key";

static void
label_hash(const char *label, const void *lane, size_t lane_size, const uint8_t *ticket,
	   uint8_t *out)
{
	uint8_t bytes[sizeof(name_label) + sizeof(uint16_t) + GP_TICKET_SIZE];
	size_t used = strlen(label);

	memcpy(bytes, label, used);
	memcpy(bytes + used, lane, lane_size);
	used += lane_size;
	memcpy(bytes + used, ticket, GP_TICKET_SIZE);
	gp_sha256(bytes, used + GP_TICKET_SIZE, out);
	explicit_bzero(bytes, sizeof(bytes));
}

void
gp_ticket_derive_name(const uint8_t ticket[GP_TICKET_SIZE], uint8_t name[GP_TICKET_SIZE])
{
	label_hash(name_label, "", 0, ticket, name);
}

void
gp_ticket_derive_key(const uint8_t ticket[GP_TICKET_SIZE], uint16_t lane,
		     uint8_t key[GP_TICKET_KEY_SIZE])
{
	uint16_t number = htole16(lane);

	label_hash(key_label, &number, sizeof(number), ticket, key);
}

bool
gp_ticket_equals(const uint8_t a[GP_TICKET_SIZE], const uint8_t b[GP_TICKET_SIZE])
{
	volatile uint8_t differs = 0;

	for (int i = 0; i < GP_TICKET_SIZE; i++)
		differs |= a[i] ^ b[i];
	return differs == 0;
}
