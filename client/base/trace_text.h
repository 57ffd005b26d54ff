/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of timeline files: formats events as the JSON array of Chrome's trace format, one event
 * per line.
 *
 * A comma precedes each event except the first, so the file of a killed program lacks only the
 * final "]".
 *
 * Ownership: the text owns its data until gpc_trace_text_fini().
 * Threads: one thread per text.
 * Errors: out of memory sets `lost`.
 * Units: times are nanoseconds, relative to begun_ns.
 */
#ifndef GPC_TRACE_TEXT_H
#define GPC_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_trace_text {
	char *data;
	size_t size, room;
	bool lost;         /* out of memory: events are missing */
	uint64_t begun_ns; /* origin of times; initially 0 */
	int pid;           /* of the program */
};

/* The track that an event belongs to. */
struct gpc_trace_track {
	int pid, tid;
};

/* Adds an event with a duration. detail: name of an additional argument with this value, or
 * NULL. */
void gpc_trace_text_span(struct gpc_trace_text *text, struct gpc_trace_track track,
			 uint64_t begun_ns, uint64_t ended_ns, const char *kind, const char *name,
			 const char *detail, uint64_t value);
/* Adds a counter value. member: name of the counted quantity. */
void gpc_trace_text_count(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t at_ns,
			  const char *name, const char *member, uint64_t value);
/* Names a track. The kind of name, `what`, is process_name, thread_name or process_labels. */
void gpc_trace_text_name(struct gpc_trace_text *text, struct gpc_trace_track track,
			 const char *what, const char *name);

void gpc_trace_text_fini(struct gpc_trace_text *text);

#endif /* GPC_TRACE_TEXT_H */
