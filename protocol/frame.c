/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/frame.h"

#include "protocol/little_endian.h"

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

/* A copy that is too short for whole chunks is split into at most CHUNKS_SPREAD chunks, whose size
 * is a multiple of CHUNK_UNIT. */
#define CHUNKS_SPREAD 8
#define CHUNK_UNIT ((uint64_t)64 << 10)

int
gp_chunk_decode(struct gp_chunk *chunk, const void *data, size_t size, size_t bulk_size)
{
	const uint8_t *bytes = data;
	uint32_t unpacked;

	if (size != GP_CHUNK_SIZE || bulk_size == 0 || bulk_size > GP_CHUNK_MAX)
		return GP_FRAME_MALFORMED;
	unpacked = gp_read_le32(bytes + 4);
	*chunk = (struct gp_chunk){
		.copy = gp_read_le32(bytes),
		.offset = gp_read_le64(bytes + 8),
		.size = unpacked ? unpacked : bulk_size,
		.packed = unpacked ? (uint32_t)bulk_size : 0,
	};
	if (chunk->size > GP_CHUNK_MAX || chunk->packed >= chunk->size + !chunk->packed ||
	    chunk->offset > UINT64_MAX - chunk->size)
		return GP_FRAME_MALFORMED;
	return 0;
}

void
gp_chunk_encode(const struct gp_chunk *chunk, uint8_t memory[GP_CHUNK_SIZE])
{
	uint32_t words[2] = { htole32(chunk->copy),
			      htole32(chunk->packed ? (uint32_t)chunk->size : 0) };
	uint64_t offset = htole64(chunk->offset);

	memcpy(memory, words, sizeof(words));
	memcpy(memory + sizeof(words), &offset, sizeof(offset));
}

uint64_t
gp_chunk_get_step(uint64_t copy_size, bool spread)
{
	uint64_t part = copy_size / CHUNKS_SPREAD / CHUNK_UNIT + 1;

	if (!spread || part * CHUNK_UNIT >= GP_CHUNK_MAX)
		return GP_CHUNK_MAX;
	return part < 2 ? 2 * CHUNK_UNIT : part * CHUNK_UNIT;
}

uint64_t
gp_chunk_get_expected_size(uint64_t copy_size, uint64_t step, uint64_t offset)
{
	if (offset >= copy_size || offset % step != 0)
		return 0;
	return copy_size - offset < step ? copy_size - offset : step;
}
