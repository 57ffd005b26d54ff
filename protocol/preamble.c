/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/preamble.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

static const uint8_t magic[8] = { 'G', 'P', 'U', 'P', 'O', 'O', 'L', '1' };

enum {
	AT_MAJOR = 8,
	AT_MINOR = 10,
	AT_KIND = 12,
	AT_LANE = 14,
	AT_TICKET = 16,
	AT_REST = AT_TICKET + GP_TICKET_SIZE,
};

static void
put_u16(uint8_t *to, uint16_t value)
{
	value = htole16(value);
	memcpy(to, &value, sizeof(value));
}

static uint16_t
get_u16(const uint8_t *from)
{
	uint16_t value;

	memcpy(&value, from, sizeof(value));
	return le16toh(value);
}

static int
is_all_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return 0;
	return 1;
}

void
gp_preamble_init(struct gp_preamble *preamble, enum gp_preamble_kind kind, uint16_t lane)
{
	*preamble = (struct gp_preamble){
		.major = GP_VERSION_MAJOR,
		.minor = GP_VERSION_MINOR,
		.kind = kind,
		.lane = lane,
	};
}

bool
gp_preamble_is_control(const struct gp_preamble *preamble)
{
	return preamble->kind == GP_PREAMBLE_CONTROL || preamble->kind == GP_PREAMBLE_CONTROL_TLS;
}

bool
gp_preamble_is_tls(const struct gp_preamble *preamble)
{
	return preamble->kind == GP_PREAMBLE_CONTROL_TLS || preamble->kind == GP_PREAMBLE_LANE_TLS;
}

void
gp_preamble_encode(const struct gp_preamble *preamble, uint8_t bytes[GP_PREAMBLE_SIZE])
{
	memset(bytes, 0, GP_PREAMBLE_SIZE);
	memcpy(bytes, magic, sizeof(magic));
	put_u16(bytes + AT_MAJOR, preamble->major);
	put_u16(bytes + AT_MINOR, preamble->minor);
	put_u16(bytes + AT_KIND, preamble->kind);
	put_u16(bytes + AT_LANE, preamble->lane);
	memcpy(bytes + AT_TICKET, preamble->ticket, GP_TICKET_SIZE);
}

int
gp_preamble_decode(const uint8_t bytes[GP_PREAMBLE_SIZE], struct gp_preamble *preamble)
{
	struct gp_preamble decoded = {
		.major = get_u16(bytes + AT_MAJOR),
		.minor = get_u16(bytes + AT_MINOR),
		.kind = get_u16(bytes + AT_KIND),
		.lane = get_u16(bytes + AT_LANE),
	};

	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return GP_E_FOREIGN;
	preamble->major = decoded.major;
	preamble->minor = decoded.minor;
	/* The layout after the version fields depends on the major version. */
	if (decoded.major != GP_VERSION_MAJOR)
		return GP_E_VERSION;
	if (!is_all_zero(bytes + AT_REST, GP_PREAMBLE_SIZE - AT_REST))
		return GP_E_INVALID;
	if (decoded.kind > GP_PREAMBLE_LANE_SHM)
		return GP_E_INVALID;
	if (gp_preamble_is_control(&decoded) &&
	    (decoded.lane != 0 || !is_all_zero(bytes + AT_TICKET, GP_TICKET_SIZE)))
		return GP_E_INVALID;
	memcpy(decoded.ticket, bytes + AT_TICKET, GP_TICKET_SIZE);
	*preamble = decoded;
	return 0;
}

void
gp_preamble_format_status(int status, const struct gp_preamble *preamble, char *text, size_t size)
{
	switch (status) {
	case 0:
		snprintf(text, size, "gpupool %u.%u", preamble->major, preamble->minor);
		break;
	case GP_E_FOREIGN:
		snprintf(text, size, "the peer does not speak the gpupool protocol");
		break;
	case GP_E_VERSION:
		snprintf(text, size, "the peer speaks gpupool %u.%u, this end %u.%u",
			 preamble->major, preamble->minor, GP_VERSION_MAJOR, GP_VERSION_MINOR);
		break;
	default:
		snprintf(text, size, "the peer sent a malformed preamble");
		break;
	}
}
