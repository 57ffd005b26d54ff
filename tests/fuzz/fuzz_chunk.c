/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzer of chunks on a data lane, as the daemon receives them for one copy. Accepted chunks are
 * inside the copy and do not overlap.
 *
 * The first 8 bytes are the copy's size. Chunks follow, each after the size of its bulk in 4 bytes.
 */
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_CHUNKS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t copy_size, seen = 0, sum = 0;

	if (size < sizeof(copy_size))
		return 0;
	memcpy(&copy_size, data, sizeof(copy_size));
	copy_size %= SIZE_MAX_CHUNKS * GP_CHUNK_MAX;
	data += sizeof(copy_size);
	size -= sizeof(copy_size);
	while (size >= sizeof(uint32_t)) {
		uint8_t again[GP_CHUNK_SIZE];
		struct gp_chunk chunk;
		uint32_t bulk;
		size_t part;

		memcpy(&bulk, data, sizeof(bulk));
		data += sizeof(bulk);
		size -= sizeof(bulk);
		part = size < GP_CHUNK_SIZE ? size : GP_CHUNK_SIZE;
		if (gp_chunk_decode(&chunk, data, part, bulk) == 0) {
			gp_chunk_encode(&chunk, again);
			if (memcmp(again, data, sizeof(again)) != 0 || chunk.size != bulk)
				abort();
			if (gp_chunk_get_expected_size(copy_size, GP_CHUNK_MAX, chunk.offset) ==
			    chunk.size) {
				uint64_t bit = 1ull << chunk.offset / GP_CHUNK_MAX;

				if (chunk.offset + chunk.size > copy_size)
					abort();
				sum += seen & bit ? 0 : chunk.size;
				seen |= bit;
			}
		}
		data += part;
		size -= part;
	}
	if (sum > copy_size)
		abort();
	return 0;
}
