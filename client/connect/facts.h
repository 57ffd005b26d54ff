/* SPDX-License-Identifier: Apache-2.0 */
/* What a daemon says of itself when a session begins, in the Welcome.  It never changes. */
#ifndef GPC_FACTS_H
#define GPC_FACTS_H

#include "gp_calls.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_session_facts {
	uint64_t session_id;
	uint64_t window_base, window_size; /* reserved here, too, PROT_NONE */
	uint64_t host_base, host_size;     /* of host memory, not reserved yet; size 0: not known */
	uint64_t granularity;              /* of gpMemoryMap; a power of two */
	uint64_t heap_size;                /* what gpContextCreate maps at once */
	uint64_t max_image_size;
	uint64_t max_bulk;     /* of the bulk of one call */
	uint64_t max_deferred; /* behind host functions; 0: GP_DEFERRED_QUEUE_MAX */
	int driver_version;    /* as cuDriverGetVersion reports it here */
	uint64_t features;     /* enum gp_feature: that both ends have */
	bool software;         /* the software device: it wants PTX */
	uint8_t unknown_calls[GP_CALL_BITMAP_SIZE]; /* bit n: the daemon does not know call n */
};

static inline bool
gpc_facts_have_call(const struct gpc_session_facts *facts, unsigned int call)
{
	return !(facts->unknown_calls[call / 8] >> call % 8 & 1);
}

#endif /* GPC_FACTS_H */
