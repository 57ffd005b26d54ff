/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session facts: properties of the daemon and its limits, parsed from the Welcome, the daemon's
 * message that opens a session. gpc_link_open() (connect.h) fills them in; they are constant
 * afterwards.
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
	uint64_t window_base, window_size; /* the session's range of device addresses, which is also
					      reserved in this process (window.h) */
	uint64_t host_base, host_size;     /* address range that the daemon proposes for host memory
					      that kernels access; not reserved here; size 0: unknown */
	uint64_t granularity; /* unit of gpMemoryMap (mapping of device memory); a power of two from
				 4 KiB to 1 GiB */
	/* Device memory that the daemon maps when it creates a context (gpc_context_activate(),
	 * client/context/context.h), as the first chunk of the client's allocator; a multiple of
	 * granularity; 0: none. */
	uint64_t heap_size;
	/* maximum size of the code in one image */
	uint64_t max_image_size;
	uint64_t max_bulk;     /* maximum bulk data in one call, at most GP_CONN_BULK_MAX */
	uint64_t max_deferred; /* maximum total size of the calls in the daemon's deferred queue; 0:
				  GP_DEFERRED_QUEUE_MAX */
	int driver_version;    /* version of the daemon's driver, at most CUDA_VERSION */
	uint64_t features;     /* features that both ends support: a mask of enum gp_feature */
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
