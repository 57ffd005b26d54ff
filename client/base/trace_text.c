/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/trace_text.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN ((size_t)1 << 16)
/* Of any number. */
#define DIGITS 20
#define NS_PER_US 1000

static void
put(struct gpc_trace_text *text, const char *bytes, size_t size)
{
	if (size > text->room - text->size) {
		size_t room = 2 * text->room + size + ROOM_MIN;
		char *grown = text->lost ? NULL : realloc(text->data, room);

		if (!grown) {
			text->lost = true;
			return;
		}
		text->data = grown;
		text->room = room;
	}
	memcpy(text->data + text->size, bytes, size);
	text->size += size;
}

static void
put_text(struct gpc_trace_text *text, const char *words)
{
	put(text, words, strlen(words));
}

/* With zeros in front, for so many digits. */
static void
put_number(struct gpc_trace_text *text, uint64_t number, int digits)
{
	char reversed[DIGITS], said[DIGITS];
	int count = 0;

	do
		reversed[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0 || count < digits);
	for (int i = 0; i < count; i++)
		said[i] = reversed[count - 1 - i];
	put(text, said, (size_t)count);
}

/* In quotes: printable ASCII as it is, other bytes as characters of their numbers. */
static void
put_string(struct gpc_trace_text *text, const char *words)
{
	static const char hex[] = "0123456789abcdef";

	put_text(text, "\"");
	for (; *words; words++) {
		unsigned char c = (unsigned char)*words;

		if (c < 0x20 || c > 0x7e) {
			put_text(text, "\\u00");
			put(text, &hex[c >> 4], 1);
			put(text, &hex[c & 15], 1);
			continue;
		}
		if (c == '"' || c == '\\')
			put_text(text, "\\");
		put(text, words, 1);
	}
	put_text(text, "\"");
}

/* In microseconds, as the format has it. */
static void
put_time(struct gpc_trace_text *text, const char *member, uint64_t ns)
{
	put_text(text, member);
	put_number(text, ns / NS_PER_US, 1);
	put_text(text, ".");
	put_number(text, ns % NS_PER_US, 3);
}

static void
put_at(struct gpc_trace_text *text, const char *member, uint64_t at_ns)
{
	put_time(text, member, at_ns > text->begun_ns ? at_ns - text->begun_ns : 0);
}

static void
begin(struct gpc_trace_text *text, const char *phase, struct gpc_trace_track track,
      const char *name)
{
	put_text(text, ",\n{\"ph\":\"");
	put_text(text, phase);
	put_text(text, "\",\"pid\":");
	put_number(text, (uint64_t)track.pid, 1);
	put_text(text, ",\"tid\":");
	put_number(text, (uint64_t)track.tid, 1);
	put_text(text, ",\"name\":");
	put_string(text, name);
}

/* The last member, and the end. */
static void
end_with_number(struct gpc_trace_text *text, const char *member, uint64_t value)
{
	put_text(text, ",\"args\":{");
	put_string(text, member);
	put_text(text, ":");
	put_number(text, value, 1);
	put_text(text, "}}");
}

void
gpc_trace_text_span(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t begun_ns,
		    uint64_t ended_ns, const char *kind, const char *name, const char *detail,
		    uint64_t value)
{
	begin(text, "X", track, name);
	put_at(text, ",\"ts\":", begun_ns);
	put_time(text, ",\"dur\":", ended_ns > begun_ns ? ended_ns - begun_ns : 0);
	put_text(text, ",\"cat\":");
	put_string(text, kind);
	if (detail)
		end_with_number(text, detail, value);
	else
		put_text(text, "}");
}

void
gpc_trace_text_count(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t at_ns,
		     const char *name, const char *member, uint64_t value)
{
	begin(text, "C", track, name);
	put_at(text, ",\"ts\":", at_ns);
	end_with_number(text, member, value);
}

void
gpc_trace_text_name(struct gpc_trace_text *text, struct gpc_trace_track track, const char *what,
		    const char *name)
{
	begin(text, "M", track, what);
	put_text(text, ",\"args\":{\"");
	put_text(text, strcmp(what, "process_labels") == 0 ? "labels\":" : "name\":");
	put_string(text, name);
	put_text(text, "}}");
}

void
gpc_trace_text_fini(struct gpc_trace_text *text)
{
	free(text->data);
	*text = (struct gpc_trace_text){ 0 };
}
