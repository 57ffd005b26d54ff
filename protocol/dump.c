/* SPDX-License-Identifier: Apache-2.0 */
#include "gp_calls.h"

#include <inttypes.h>
#include <string.h>

const struct gp_call_info *
gp_call_find(uint16_t number)
{
	size_t low = 0, high = gp_call_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (gp_call_table[middle].number == number)
			return &gp_call_table[middle];
		if (gp_call_table[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void
gp_call_bitmap(uint8_t *bitmap)
{
	memset(bitmap, 0, GP_CALL_BITMAP_SIZE);
	for (size_t i = 0; i < gp_call_count; i++)
		bitmap[gp_call_table[i].number / 8] |= (uint8_t)(1u << gp_call_table[i].number % 8);
}

static void
dump_bytes(FILE *file, struct gp_bytes bytes)
{
	const uint8_t *data = bytes.data;

	fprintf(file, "[%zu]", bytes.size);
	for (size_t i = 0; i < bytes.size && i < 16; i++)
		fprintf(file, "%s%02x", i ? "" : " ", data[i]);
	if (bytes.size > 16)
		fputs("...", file);
}

static void
dump_fields(FILE *file, const void *values, const struct gp_field_info *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const void *at = (const char *)values + fields[i].offset;
		union {
			uint32_t u32;
			int32_t i32;
			uint64_t u64;
			float f32;
			struct gp_bytes bytes;
		} value;

		fprintf(file, " %s=", fields[i].name);
		switch (fields[i].kind) {
		case GP_FIELD_U32:
			memcpy(&value.u32, at, sizeof(value.u32));
			fprintf(file, "%" PRIu32, value.u32);
			break;
		case GP_FIELD_I32:
			memcpy(&value.i32, at, sizeof(value.i32));
			fprintf(file, "%" PRId32, value.i32);
			break;
		case GP_FIELD_U64:
			memcpy(&value.u64, at, sizeof(value.u64));
			fprintf(file, "0x%" PRIx64, value.u64);
			break;
		case GP_FIELD_F32:
			memcpy(&value.f32, at, sizeof(value.f32));
			fprintf(file, "%g", (double)value.f32);
			break;
		case GP_FIELD_BYTES:
			memcpy(&value.bytes, at, sizeof(value.bytes));
			dump_bytes(file, value.bytes);
			break;
		}
	}
}

static void
dump_call(FILE *file, const struct gp_call_info *info, bool reply, const void *fields, size_t size)
{
	uint64_t values[64];
	size_t needed = reply ? info->reply_size : info->args_size;
	struct gp_dec dec;

	if (needed > sizeof(values) || (reply && (!info->decode_reply || size == 0)))
		return;
	gp_dec_init(&dec, fields, size);
	if (reply)
		info->decode_reply(&dec, values);
	else
		info->decode_args(&dec, values);
	if (!gp_dec_done(&dec)) {
		fputs(" (malformed)", file);
		return;
	}
	dump_fields(file, values, reply ? info->reply : info->args,
		    reply ? info->reply_count : info->arg_count);
}

static const char *
note_get_name(uint16_t call)
{
	switch (call) {
	case GP_NOTE_DATA:
		return "data";
	case GP_NOTE_ERROR:
		return "error";
	case GP_NOTE_PRINT:
		return "print";
	case GP_NOTE_COMPLAIN:
		return "complain";
	}
	return NULL;
}

void
gp_dump_record(FILE *file, const struct gp_header *header, const void *fields, size_t size)
{
	const struct gp_call_info *info = gp_call_find(header->call);
	bool reply = header->flags & GP_FRAME_REPLY;

	if (note_get_name(header->call))
		fprintf(file, "note %s #%" PRIu32, note_get_name(header->call), header->request);
	else
		fprintf(file, "%s%s", reply ? "reply " : "", info ? info->name : "unknown call");
	if (!info && !note_get_name(header->call))
		fprintf(file, " 0x%04x", header->call);
	if (!note_get_name(header->call) && header->request)
		fprintf(file, " #%" PRIu32, header->request);
	fprintf(file, reply ? " result %" PRIu32 : " context %" PRIu32, header->context);
	if (info)
		dump_call(file, info, reply, fields, size);
	fputs(header->flags & GP_FRAME_BULK ? " +bulk\n" : "\n", file);
}
