/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session facts: properties of the daemon and its limits, parsed from the Welcome when a session
 * starts. Constant afterwards.
 *
 * Units: sizes are bytes.
 */
#ifndef GPC_WELCOME_H
#define GPC_WELCOME_H

#include "gp_calls.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_session_facts {
	uint64_t session_id;
	uint64_t window_base, window_size; /* also reserved in this process, PROT_NONE */
	uint64_t host_base,
		host_size;    /* address range of host memory, not reserved yet; size 0: unknown */
	uint64_t granularity; /* of gpMemoryMap; a power of two */
	uint64_t heap_size;   /* mapped by gpContextCreate */
	uint64_t max_image_size;
	uint64_t max_bulk;     /* of bulk data in one call */
	uint64_t max_deferred; /* of calls deferred after host functions; 0: GP_DEFERRED_QUEUE_MAX
				*/
	int driver_version;    /* as cuDriverGetVersion() reports it to the program */
	uint64_t features;     /* mask of enum gp_feature supported by both ends */
	bool software;         /* the software device, which requires PTX */
	uint8_t unknown_calls[GP_CALL_BITMAP_SIZE]; /* bit n: the daemon does not support call n */
};

/* Returns whether the daemon supports this call number. */
static inline bool
gpc_facts_have_call(const struct gpc_session_facts *facts, unsigned int call)
{
	return !(facts->unknown_calls[call / 8] >> call % 8 & 1);
}

#endif /* GPC_WELCOME_H */
