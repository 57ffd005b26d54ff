/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/trace_text.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_MIN ((size_t)1 << 16)
/* Maximum number of decimal digits of a uint64_t. */
#define DIGITS 20
#define NS_PER_US 1000

static void
text_append(struct gpc_trace_text *text, const char *bytes, size_t size)
{
	if (size > text->capacity - text->size) {
		size_t capacity = 2 * text->capacity + size + ROOM_MIN;
		char *grown = text->lost ? NULL : realloc(text->data, capacity);

		if (!grown) {
			text->lost = true;
			return;
		}
		text->data = grown;
		text->capacity = capacity;
	}
	memcpy(text->data + text->size, bytes, size);
	text->size += size;
}

static void
text_append_string(struct gpc_trace_text *text, const char *words)
{
	text_append(text, words, strlen(words));
}

/* Pads with leading zeros to at least this number of digits. */
static void
text_append_number(struct gpc_trace_text *text, uint64_t number, int digits)
{
	char reversed[DIGITS], digits_text[DIGITS];
	int count = 0;

	do
		reversed[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0 || count < digits);
	for (int i = 0; i < count; i++)
		digits_text[i] = reversed[count - 1 - i];
	text_append(text, digits_text, (size_t)count);
}

/* Writes a quoted string: printable ASCII unchanged, other bytes as \u00XX. */
static void
text_append_quoted(struct gpc_trace_text *text, const char *words)
{
	static const char hex[] = "0123456789abcdef";

	text_append_string(text, "\"");
	for (; *words; words++) {
		unsigned char c = (unsigned char)*words;

		if (c < 0x20 || c > 0x7e) {
			text_append_string(text, "\\u00");
			text_append(text, &hex[c >> 4], 1);
			text_append(text, &hex[c & 15], 1);
			continue;
		}
		if (c == '"' || c == '\\')
			text_append_string(text, "\\");
		text_append(text, words, 1);
	}
	text_append_string(text, "\"");
}

/* The trace format uses microseconds. */
static void
text_append_duration(struct gpc_trace_text *text, const char *member, uint64_t ns)
{
	text_append_string(text, member);
	text_append_number(text, ns / NS_PER_US, 1);
	text_append_string(text, ".");
	text_append_number(text, ns % NS_PER_US, 3);
}

static void
text_append_time(struct gpc_trace_text *text, const char *member, uint64_t at_ns)
{
	text_append_duration(text, member, at_ns > text->begun_ns ? at_ns - text->begun_ns : 0);
}

static void
event_open(struct gpc_trace_text *text, const char *phase, struct gpc_trace_track track,
	   const char *name)
{
	text_append_string(text, ",\n{\"ph\":\"");
	text_append_string(text, phase);
	text_append_string(text, "\",\"pid\":");
	text_append_number(text, (uint64_t)track.pid, 1);
	text_append_string(text, ",\"tid\":");
	text_append_number(text, (uint64_t)track.tid, 1);
	text_append_string(text, ",\"name\":");
	text_append_quoted(text, name);
}

/* Appends the last member and closes the event. */
static void
event_close_with_number(struct gpc_trace_text *text, const char *member, uint64_t value)
{
	text_append_string(text, ",\"args\":{");
	text_append_quoted(text, member);
	text_append_string(text, ":");
	text_append_number(text, value, 1);
	text_append_string(text, "}}");
}

void
gpc_trace_text_span(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t begun_ns,
		    uint64_t ended_ns, const char *kind, const char *name, const char *detail,
		    uint64_t value)
{
	event_open(text, "X", track, name);
	text_append_time(text, ",\"ts\":", begun_ns);
	text_append_duration(text, ",\"dur\":", ended_ns > begun_ns ? ended_ns - begun_ns : 0);
	text_append_string(text, ",\"cat\":");
	text_append_quoted(text, kind);
	if (detail)
		event_close_with_number(text, detail, value);
	else
		text_append_string(text, "}");
}

void
gpc_trace_text_count(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t at_ns,
		     const char *name, const char *member, uint64_t value)
{
	event_open(text, "C", track, name);
	text_append_time(text, ",\"ts\":", at_ns);
	event_close_with_number(text, member, value);
}

void
gpc_trace_text_name(struct gpc_trace_text *text, struct gpc_trace_track track, const char *what,
		    const char *name)
{
	event_open(text, "M", track, what);
	text_append_string(text, ",\"args\":{\"");
	text_append_string(text, strcmp(what, "process_labels") == 0 ? "labels\":" : "name\":");
	text_append_quoted(text, name);
	text_append_string(text, "}}");
}

void
gpc_trace_text_fini(struct gpc_trace_text *text)
{
	free(text->data);
	*text = (struct gpc_trace_text){ 0 };
}
