/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies over the data lanes of a session: their records on lane 0, their chunks on lanes 1 and 2,
 * to a worker on the software device.  Each operation is a byte with its operands: records and
 * chunks whose numbers, offsets and sizes are the input's, records taken unchanged from the
 * input, and bytes on a lane.  The session has a context, a stream and memory.
 */
#include "gp_calls.h"
#include "protocol/frame.h"
#include "tests/fuzz/session.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY ((uint64_t)8 << 20)
#define CONTEXT 1
/* Bulk of one input. */
#define BUDGET ((size_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *next, *end;
	size_t budget;
	uint32_t request;
};

static unsigned int
pop_byte(struct input *input)
{
	return input->next < input->end ? *input->next++ : 0;
}

static void
send_record(struct fuzz_session *session, uint16_t call, uint32_t request, const void *args)
{
	const struct gp_call_info *info = gp_call_find(call);
	uint8_t message[256] = { 0 };
	size_t at = 8 + sizeof(struct gp_header);
	uint32_t size;

	for (size_t i = 0; i < info->arg_count; i++) {
		size_t width = info->args[i].kind == GP_FIELD_U64 ? 8 : 4;

		at = (at + width - 1) & ~(width - 1);
		memcpy(message + at, (const char *)args + info->args[i].offset, width);
		at += width;
	}
	at = (at + 7) & ~(size_t)7;
	size = (uint32_t)at - 8;
	gp_header_encode(
		&(struct gp_header){
			.size = size, .call = call, .request = request, .context = CONTEXT },
		message + 8);
	memcpy(message, &size, sizeof(size));
	(void)fuzz_session_send(session, 0, message, at);
}

/* A size or a place: whole chunks and some bytes, or anything. */
static uint64_t
pop_size(struct input *input)
{
	unsigned int code = pop_byte(input);

	if (code == 0xff)
		return ~(uint64_t)0 - pop_byte(input);
	return (uint64_t)(code >> 5) * GP_CHUNK_MAX + (code & 31 ? (code & 31) * 777u : 0);
}

static void
send_chunk(struct fuzz_session *session, struct input *input)
{
	static uint8_t zeros[GP_CHUNK_MAX + 8];
	unsigned int how = pop_byte(input);
	struct gp_chunk chunk = { .copy = pop_byte(input), .offset = pop_size(input) };
	uint8_t head[8 + GP_CHUNK_SIZE];
	uint32_t size = GP_CHUNK_SIZE, bulk = GP_CHUNK_MAX;
	unsigned int lane = 1 + how % 2;

	if (how & 2)
		bulk = (uint32_t)(pop_size(input) % sizeof(zeros));
	if (how & 4)
		chunk.copy -= 128;
	gp_chunk_encode(&chunk, head + 8);
	if (how & 8)
		head[8 + 4 + how / 16 % 4] = (uint8_t)pop_byte(input);
	if (bulk > input->budget)
		return;
	input->budget -= bulk;
	memcpy(head, &size, sizeof(size));
	memcpy(head + 4, &bulk, sizeof(bulk));
	(void)fuzz_session_send(session, lane, head, sizeof(head));
	(void)fuzz_session_send(session, lane, zeros, bulk);
}

static void
send_copy(struct fuzz_session *session, struct input *input)
{
	struct gp_args_gpCopyInLanes in = { .stream = pop_byte(input) % 4 };
	struct gp_args_gpCopyOutLanes out = { .stream = in.stream };
	unsigned int how = pop_byte(input);

	in.copy = out.copy = pop_byte(input);
	in.size = out.size = pop_size(input);
	in.dst = out.src = FUZZ_WINDOW_FIRST + (how & 1 ? pop_size(input) : 0);
	in.flags = how & 2 ? pop_byte(input) : 0;
	if (how & 4)
		send_record(session, GP_CALL_gpCopyOutLanes, ++input->request, &out);
	else
		send_record(session, GP_CALL_gpCopyInLanes, 0, &in);
}

/* Bytes of the input: as a message, or as they are. */
static void
send_bytes(struct fuzz_session *session, struct input *input, bool message, unsigned int lane)
{
	uint32_t sizes[2] = { pop_byte(input) };

	if (sizes[0] > (size_t)(input->end - input->next))
		sizes[0] = (uint32_t)(input->end - input->next);
	if (message)
		(void)fuzz_session_send(session, lane, sizes, sizeof(sizes));
	(void)fuzz_session_send(session, lane, input->next, sizes[0]);
	input->next += sizes[0];
}

static void
prepare(struct fuzz_session *session)
{
	struct gp_args_gpContextCreate context = { .context = CONTEXT, .legacy = 1 };
	struct gp_args_gpMemoryMap memory = { .address = FUZZ_WINDOW_FIRST, .size = MEMORY };
	struct gp_args_cuStreamCreateWithPriority stream = { .phStream = 3 };

	send_record(session, GP_CALL_gpContextCreate, 1, &context);
	send_record(session, GP_CALL_gpMemoryMap, 2, &memory);
	send_record(session, GP_CALL_cuStreamCreateWithPriority, 0, &stream);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, data + size, BUDGET, 10 };
	struct fuzz_session session;

	fuzz_session_open(&session, FUZZ_LANES);
	prepare(&session);
	while (input.next < input.end) {
		unsigned int what = pop_byte(&input);

		switch (what % 8) {
		case 0:
			send_bytes(&session, &input, true, 0);
			break;
		case 1:
			send_bytes(&session, &input, what & 8, 1 + (what >> 4) % 2);
			break;
		case 2:
		case 3:
			send_copy(&session, &input);
			break;
		default:
			send_chunk(&session, &input);
		}
	}
	fuzz_session_close(&session);
	return 0;
}
