/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpTraceTake tells: work that streams have done, each with the time it took by the daemon's
 * clock.  Pure functions, any thread.
 */
#ifndef GP_TRACE_EVENT_H
#define GP_TRACE_EVENT_H

#include "protocol/dec.h"
#include "protocol/enc.h"

#include <stdbool.h>
#include <stdint.h>

/* The most that one answer has. */
#define GP_TRACE_EVENTS_MAX 512
#define GP_TRACE_NAME_MAX 1024
/* Both ends keep names in so many places, a kernel's where gp_trace_get_name_slot() says.  The
 * daemon tells a name when it enters it, so one that is not told is the one that stands there. */
#define GP_TRACE_NAME_SLOTS 1024

struct gp_trace_event {
	uint64_t begin_ns, end_ns;
	uint64_t kernel; /* gp_kernel of a launch, else 0 */
	uint32_t stream;
	uint32_t device; /* the daemon's number of it */
	uint32_t call;   /* that gave the stream the work */
	uint32_t joined; /* work of the stream in front of it that was not measured by itself */
	struct gp_bytes name;
};

static inline uint32_t
gp_trace_get_name_slot(uint64_t kernel)
{
	return (uint32_t)((kernel >> 32) * 31 + kernel) % GP_TRACE_NAME_SLOTS;
}

#define GP_TRACE_EVENT_SIZE(name_size) (40 + GP_ENC_BYTES_SIZE(name_size))
void gp_trace_event_encode(struct gp_enc *enc, const struct gp_trace_event *event);
/* The next one; false: there is none, or what is there is none (gp_dec_ok()). */
bool gp_trace_event_decode(struct gp_dec *dec, struct gp_trace_event *event);

#endif /* GP_TRACE_EVENT_H */
