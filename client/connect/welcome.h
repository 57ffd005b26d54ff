/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session facts: properties of the daemon and its limits, parsed from the Welcome, the daemon's
 * message that opens a session. Constant afterwards.
 *
 * Ownership: plain data.
 * Threads: any thread may read.
 * Units: sizes are bytes.
 */
#ifndef GPC_WELCOME_H
#define GPC_WELCOME_H

#include "gp_calls.h"

#include <stdbool.h>
#include <stdint.h>

/* The facts of one session. */
struct gpc_session_facts {
	uint64_t session_id;
	uint64_t window_base, window_size; /* the session's range of device addresses (window.h),
					      also reserved in this process, PROT_NONE */
	uint64_t host_base, host_size;     /* address range for host memory that kernels access, not
					      reserved yet; size 0: unknown */
	uint64_t granularity; /* unit of gpMemoryMap (mapping of device memory); a power of two */
	uint64_t heap_size;   /* device memory that gpContextCreate maps */
	/* maximum size of the code in one image */
	uint64_t max_image_size;
	uint64_t max_bulk;     /* maximum bulk data in one call */
	uint64_t max_deferred; /* maximum size of calls that the daemon defers until host functions
				  have run; 0: GP_DEFERRED_QUEUE_MAX */
	int driver_version;    /* version that cuDriverGetVersion() reports to the program */
	uint64_t features;     /* mask of enum gp_feature supported by both ends */
	bool software; /* the daemon has no GPU but the software device, which requires PTX */
	uint8_t unknown_calls[GP_CALL_BITMAP_SIZE]; /* bit n: the daemon does not support call n */
};

/* Returns whether the daemon supports the call with this number in the protocol, which must be less
 * than 8 * GP_CALL_BITMAP_SIZE. */
static inline bool
gpc_facts_have_call(const struct gpc_session_facts *facts, unsigned int call)
{
	return !(facts->unknown_calls[call / 8] >> call % 8 & 1);
}

#endif /* GPC_WELCOME_H */
