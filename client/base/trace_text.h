/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as the text of a timeline file: the JSON array of Chrome's trace format, one event a line.
 * A comma stands before each event but the first, so that a file whose program was killed is whole
 * but for the "]".  A text belongs to one thread.
 */
#ifndef GPC_TRACE_TEXT_H
#define GPC_TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_trace_text {
	char *data;
	size_t size, room;
	bool lost;         /* there was no memory for all of it */
	uint64_t begun_ns; /* what times are told from; 0 at first */
	int pid;           /* of the program */
};

/* Where an event belongs. */
struct gpc_trace_track {
	int pid, tid;
};

/* Something that took time.  detail: a member of args, or NULL. */
void gpc_trace_text_span(struct gpc_trace_text *text, struct gpc_trace_track track,
			 uint64_t begun_ns, uint64_t ended_ns, const char *kind, const char *name,
			 const char *detail, uint64_t value);
/* A number that changes; member: what it is. */
void gpc_trace_text_count(struct gpc_trace_text *text, struct gpc_trace_track track, uint64_t at_ns,
			  const char *name, const char *member, uint64_t value);
/* What a track is called; what: process_name, thread_name or process_labels. */
void gpc_trace_text_name(struct gpc_trace_text *text, struct gpc_trace_track track,
			 const char *what, const char *name);

void gpc_trace_text_fini(struct gpc_trace_text *text);

#endif /* GPC_TRACE_TEXT_H */
