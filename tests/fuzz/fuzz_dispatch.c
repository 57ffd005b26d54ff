/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a client to a worker on the software device: records back to back.  Each becomes a
 * message of its own; a record with the bulk flag is followed by a u32, the number of bytes of
 * bulk, and the bulk.  A record whose end is unknown is sent with the rest of the input.  An
 * image's hash is corrected unless its first byte is zero; otherwise only images of the first
 * inputs would be parsed.
 */
#include "gp_calls.h"
#include "protocol/dec.h"
#include "protocol/frame.h"
#include "tests/fuzz/session.h"

#include <openssl/evp.h>
#include <string.h>

#define INPUT_MAX ((size_t)1 << 18)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
send_message(struct fuzz_session *session, const uint8_t *record, size_t size, const uint8_t *bulk,
	     size_t bulk_size)
{
	uint32_t sizes[2] = { (uint32_t)size, (uint32_t)bulk_size };

	return fuzz_session_send(session, 0, sizes, sizeof(sizes)) &&
	       fuzz_session_send(session, 0, record, size) &&
	       fuzz_session_send(session, 0, bulk, bulk_size);
}

/* Writes the hash of the image's bytes into the copy of its record. */
static void
make_hash_right(uint8_t *record, size_t size, const uint8_t *bulk, size_t bulk_size)
{
	struct gp_args_gpImageLoad args;
	struct gp_dec dec;

	gp_dec_init(&dec, record + sizeof(struct gp_header), size - sizeof(struct gp_header));
	gp_args_gpImageLoad_decode(&dec, &args);
	if (gp_dec_ok(&dec) && args.sha256.size == 32 && *(const uint8_t *)args.sha256.data) {
		uint8_t *hash = record + ((const uint8_t *)args.sha256.data - record);
		uint64_t said = bulk_size;

		(void)EVP_Digest(bulk, bulk_size, hash, NULL, EVP_sha256(), NULL);
		/* The image's size follows the hash. */
		memcpy(hash + 32, &said, sizeof(said));
	}
}

static void
send_records(struct fuzz_session *session, const uint8_t *data, size_t size)
{
	static uint8_t copy[INPUT_MAX];

	while (size) {
		const uint8_t *bulk = data;
		uint32_t bulk_size = 0;
		struct gp_header header = { 0 };
		size_t record = size;

		if (gp_header_decode(&header, data, size) == 0) {
			record = header.size;
			bulk = data + record;
			if (header.flags & GP_FRAME_BULK && size - record >= sizeof(bulk_size)) {
				memcpy(&bulk_size, bulk, sizeof(bulk_size));
				bulk += sizeof(bulk_size);
				if (bulk_size > size - record - sizeof(bulk_size))
					bulk_size = (uint32_t)(size - record - sizeof(bulk_size));
			}
		}
		memcpy(copy, data, record);
		if (header.call == GP_CALL_gpImageLoad && bulk_size)
			make_hash_right(copy, record, bulk, bulk_size);
		if (!send_message(session, copy, record, bulk, bulk_size))
			return;
		record = (size_t)(bulk - data) + bulk_size > record
				 ? (size_t)(bulk - data) + bulk_size
				 : record;
		data += record;
		size -= record;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_session session;

	if (size > INPUT_MAX)
		return 0;
	fuzz_session_open(&session, 1);
	send_records(&session, data, size);
	fuzz_session_close(&session);
	return 0;
}
