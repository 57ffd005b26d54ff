/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of timeline files: formats events as the JSON array of Chrome's trace format, one event
 * per line.
 *
 * A comma precedes each event, and the caller replaces the first comma by "[". So the file of a
 * killed program lacks only the final "]".
 *
 * Ownership: the text owns its data until gpc_trace_text_fini(). Strings that are passed in are
 * copied. A text is initially zero; the caller sets begun_ns and pid. After writing the data to a
 * file, the caller sets size to 0.
 * Threads: one thread per text.
 * Errors: the functions return nothing. Out of memory sets `lost`; the data is then incomplete.
 * Units: times are nanoseconds, relative to begun_ns; a time before it counts as begun_ns.
 */
#ifndef GPC_TRACE_TEXT_H
#define GPC_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Formatted events that are not written to the file yet. */
struct gpc_trace_text {
	/* `size` bytes of formatted events, not NUL-terminated; `capacity` bytes are allocated */
	char *data;
	size_t size, capacity;
	bool lost; /* out of memory: events are missing or incomplete; stays set, and `data` grows
		      no more */
	uint64_t begun_ns; /* origin of times; 0: the origin of the clock */
	int pid; /* process ID of the program; gpc_trace_flush() (trace.h) uses it for its tracks */
};

/* The track (row of the timeline) of an event: process ID and thread ID. */
struct gpc_trace_track {
	int pid, tid;
};

/* Adds an event with a duration. kind: the category; name: the text shown. detail: name of an
 * additional argument with this value; NULL: no argument. */
void gpc_trace_text_span(struct gpc_trace_text *text, struct gpc_trace_track track,
			 uint64_t begun_ns, uint64_t ended_ns, const char *kind, const char *name,
			 const char *detail, uint64_t value);
/* Adds a value of a counter at a time. name: name of the counter; member: name of the counted
 * quantity. */
void gpc_trace_text_count(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t at_ns,
			  const char *name, const char *member, uint64_t value);
/* Names a track. what: "process_name", "thread_name" or "process_labels". */
void gpc_trace_text_name(struct gpc_trace_text *text, struct gpc_trace_track track,
			 const char *what, const char *name);

/* Frees the data and zeroes the struct. */
void gpc_trace_text_fini(struct gpc_trace_text *text);

#endif /* GPC_TRACE_TEXT_H */
