/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of gpTraceTake: work of streams with its start and end by the daemon's clock.
 *
 * Ownership: decoded names point into the reply.
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
#define GP_TRACE_NAME_MAX 1024
/* Both ends cache kernel names in this many slots; gp_trace_get_name_slot() returns a kernel's
 * slot. The daemon sends a name when it stores it in the slot; an event without a name refers to
 * the name in the slot. */
#define GP_TRACE_NAME_SLOTS 1024

struct gp_trace_event {
	uint64_t begin_ns, end_ns;
	uint64_t kernel; /* gp_kernel of a launch, otherwise 0 */
	uint32_t stream;
	uint32_t device; /* the daemon's ordinal */
	uint32_t call;   /* call that submitted the work */
	uint32_t joined; /* earlier work of the stream that was not measured separately */
	struct gp_bytes name;
};

static inline uint32_t
gp_trace_get_name_slot(uint64_t kernel)
{
	return (uint32_t)((kernel >> 32) * 31 + kernel) % GP_TRACE_NAME_SLOTS;
}

#define GP_TRACE_EVENT_SIZE(name_size) (40 + GP_ENC_BYTES_SIZE(name_size))
void gp_trace_event_encode(struct gp_enc *enc, const struct gp_trace_event *event);
/* Decodes the next event. Returns false at the end or if the event is malformed (gp_dec_ok()). */
bool gp_trace_event_decode(struct gp_dec *dec, struct gp_trace_event *event);

#endif /* GP_TRACE_EVENT_H */
