/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/frame.h"

#include <endian.h>
#include <string.h>

int
gp_header_decode(struct gp_header *header, const void *data, size_t available)
{
	struct gp_header wire;

	if (available < sizeof(wire))
		return GP_FRAME_MALFORMED;
	memcpy(&wire, data, sizeof(wire));
	*header = (struct gp_header){
		.size = le32toh(wire.size),
		.call = le16toh(wire.call),
		.flags = le16toh(wire.flags),
		.request = le32toh(wire.request),
		.context = le32toh(wire.context),
	};
	if (header->size < sizeof(wire) || header->size % 8 != 0 || header->size > available)
		return GP_FRAME_MALFORMED;
	return 0;
}

void
gp_header_encode(const struct gp_header *header, void *memory)
{
	struct gp_header wire = {
		.size = htole32(header->size),
		.call = htole16(header->call),
		.flags = htole16(header->flags),
		.request = htole32(header->request),
		.context = htole32(header->context),
	};

	memcpy(memory, &wire, sizeof(wire));
}
