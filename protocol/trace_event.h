/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in a reply to gpTraceTake: work of streams, each with its start and end by the clock of
 * the GPU's machine. The client writes them to the program's trace (client/trace/).
 *
 * Ownership: names are borrowed; a decoded name points into the reply and is not NUL-terminated.
 * Threads: any; pure functions.
 * Units: nanoseconds.
 */
#ifndef GP_TRACE_EVENT_H
#define GP_TRACE_EVENT_H

#include "protocol/dec.h"
#include "protocol/enc.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of events in a reply. */
#define GP_TRACE_EVENTS_MAX 512
/* Maximum length of a kernel name; the worker truncates longer names. */
#define GP_TRACE_NAME_MAX 1024
/* Number of slots in the cache of kernel names that both ends have; gp_trace_get_name_slot()
 * returns a kernel's slot. The worker sends a name when it stores it in the slot; an event without
 * a name refers to the name in the slot. */
#define GP_TRACE_NAME_SLOTS 1024

struct gp_trace_event {
	uint64_t begin_ns, end_ns;
	uint64_t kernel; /* kernel ID (GP_KERNEL()) of a launch, otherwise 0 */
	uint32_t stream; /* session's ID of the stream */
	uint32_t device; /* CUDA device ordinal of the daemon */
	uint32_t call;   /* call number (enum gp_call) that submitted the work */
	/* number of the stream's operations without an event since its last operation with one */
	uint32_t joined;
	/* kernel name, without a NUL; empty: the name in the slot, if that is the same kernel's;
	 * work that is not a kernel has no name */
	struct gp_bytes name;
};

/* Returns a kernel's slot in the cache of names. */
static inline uint32_t
gp_trace_get_name_slot(uint64_t kernel)
{
	return (uint32_t)((kernel >> 32) * 31 + kernel) % GP_TRACE_NAME_SLOTS;
}

/* Upper bound of the size of an encoded event, in bytes. */
#define GP_TRACE_EVENT_SIZE(name_size) (40 + GP_ENC_BYTES_SIZE(name_size))
/* Appends an event; enc has room for GP_TRACE_EVENT_SIZE(). */
void gp_trace_event_encode(struct gp_enc *enc, const struct gp_trace_event *event);
/* Decodes the next event of a reply. Returns true; or false with *event undefined: at the end, and
 * gp_dec_ok() is then true, or if the event is malformed, and gp_dec_ok() is then false. */
bool gp_trace_event_decode(struct gp_dec *dec, struct gp_trace_event *event);

#endif /* GP_TRACE_EVENT_H */
