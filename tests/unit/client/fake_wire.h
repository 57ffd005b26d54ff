/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session for tests of the client's memory and copies: what stands below them, on a device that
 * is a piece of this process's memory.  The window itself cannot be touched, like a real one.
 */
#ifndef FAKE_WIRE_H
#define FAKE_WIRE_H

#include "client/context/context.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"
#include "client/wire/call.h"
#include "client/wire/host_queue.h"
#include "client/wire/session.h"
#include "tests/test.h"

#include <cuda.h>
#include <stdbool.h>

#define FAKE_WIRE_MIB ((size_t)1 << 20)
#define FAKE_WIRE_WINDOW (512 * FAKE_WIRE_MIB)
/* Where addresses besides the window are: see server/worker/device/window.h. */
#ifdef __SANITIZE_THREAD__
#define FAKE_WIRE_BESIDES ((uint64_t)0x551000000000)
#else
#define FAKE_WIRE_BESIDES ((uint64_t)0x310000000000)
#endif
/* And those for host memory that kernels reach. */
#define FAKE_WIRE_HOST (FAKE_WIRE_BESIDES + ((uint64_t)1 << 38))
#define FAKE_WIRE_GRANULE (2 * FAKE_WIRE_MIB)
#define FAKE_WIRE_STREAM ((CUstream)(uintptr_t)0x5757)

/* A call that succeeds, and one whose arguments make no sense. */
#define CU(call) assert_int_equal(call, CUDA_SUCCESS)
#define INVALID(call) assert_int_equal(call, CUDA_ERROR_INVALID_VALUE)

struct gpc_session_hooks;

struct fake_wire {
	uint64_t window;
	uint8_t *device; /* what is behind the window */
	uint64_t quota;
	uint64_t mapped; /* bytes */
	bool lanes;      /* it has data lanes, from which copies get no bytes */
	bool lazy;       /* copies to the host arrive when somebody waits */
	bool busy;       /* the GPU does not get anywhere unless it is waited for */
	CUresult enter;  /* of gpc_enter() */
	CUresult copy_out_result;
	bool copy_out_short; /* answers without bytes */
	bool has_functions;  /* host functions that are not done */
	bool foreign_wait;   /* a wait for another process's event */
	CUresult pending;    /* of a posted call: told by the next one that waits */
	CUresult deferred;
	CUresult failed;
	uint64_t posted, done;
	uint64_t allowance; /* part of what is mapped */
	uint64_t told_kept;
	/* Counts of calls. */
	int replacements, grants, uses, copies_in_short, maps, unmaps, fences, waits, copies_in,
		barriers, copies_out, copies_out_lanes, ordered, copies_device, fills, syncs, keeps,
		kept;
	size_t largest_copy_in;
	void (*array_destroyed)(
		void); /* what another thread does when the daemon is told; or NULL */
	int objects;   /* texture and surface objects that the daemon has */
	bool sparse;   /* its device has sparse arrays; of which so many parts were asked for */
	int parts, part_calls;
	int arrays_made;   /* out of credit */
	int shares, opens; /* what it shares with others now; what others' was opened */
	/* Addresses besides the window: how many times they were asked for, and are held. */
	int reserves, reserved;
	CUresult reserve_result;
	/* Host memory that kernels reach: fake_wire_allow_host(). */
	bool shares_memory;
	uint64_t host_quota, host_written;
	/* Listed copies: the number of the last one; of the last replacement its number, its last
	 * byte, and how much of host memory had been written before; and all their bytes. */
	uint32_t last_listed, last_replaced;
	uint8_t last_replaced_byte;
	uint64_t replaced_before, replaced_bytes;
	int host_reserves, host_maps, host_fetches, host_behinds;
	int host_busy; /* so often something is still where gpHostMap wants memory */
	void (*meanwhile)(
		void); /* what happens once before an answer that is waited for; or NULL */
	struct gpc_host_call late[4]; /* the library's functions whose turn has not come */
	int late_count;
	const struct gpc_session_hooks *hooks;
	struct gpc_session_facts *facts;
	struct gpc_context *context;
	struct gpc_stream *stream; /* the only one besides the default */
	struct gpc_stream *legacy;
};

extern struct fake_wire fake;

int fake_wire_setup(void **state);
int fake_wire_teardown(void **state);
#define FAKE_WIRE_TEST(test) UNIT_TEST_WITH(test, fake_wire_setup, fake_wire_teardown)

/* A request that will be answered with these bytes, which are malloc'ed. */
void fake_wire_start(struct gpc_request *request, uint8_t *bytes, uint64_t size, CUresult result);

/* From now on the daemon knows late copies. */
void fake_wire_allow_late(void);
/* The stream reaches the oldest of the library's functions; or, with an error, the session is over.
 */
void fake_wire_run_late(CUresult result);

/* Arrays that the daemon has when what is kept has been given back. */
int fake_wire_arrays(void);

/* Answers everything that is under way: the reader of the connection. */
void fake_wire_deliver(void);
/* Whether nothing is under way. */
bool fake_wire_is_idle(void);

/* The daemon wants back what is kept. */
void fake_wire_recall(void);
/* From now on the daemon may be asked for credit (gpMemoryGrant), of which fake.credit is left.
 * What nobody waits for is answered before the next question is. */
void fake_wire_allow_credit(void);
/* Bytes that are mapped when that has been given back. */
uint64_t fake_wire_mapped(void);

/* From now on the daemon has host memory that kernels reach, or it has none. */
void fake_wire_allow_host(void);
void fake_wire_forbid_host(void);
/* As a kernel would see it; and how much there is. */
bool fake_wire_host_has(uint64_t address, uint64_t size);
uint8_t *fake_wire_host_at(uint64_t address);
uint64_t fake_wire_host_mapped(void);
/* Whether gpHostPlace has placed it: it is unmapped then. */
bool fake_wire_host_displace(uint64_t address, uint64_t size);
/* Before the answer to a request: what a gpHostTakeBehind asks for. */
void fake_wire_host_look(struct gpc_request *request);

/* Of counts that several threads change. */
static inline void
fake_wire_count(int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* The test fails unless all of it is mapped. */
void fake_wire_expect_mapped(uint64_t address, uint64_t size);
/* Nothing is mapped any more but credit. */
void fake_wire_memory_end(void);

/* What came behind a call, which must be so many bytes; the caller frees it. */
uint8_t *fake_wire_gather(const struct iovec *bulk, int bulk_count, uint64_t size);

/* Device memory, as a kernel would see it. */
uint8_t *fake_wire_at(CUdeviceptr address);

/* Allocates or fails the test. */
CUdeviceptr fake_wire_alloc(size_t size);
/* A buffer with a pattern in it; the caller frees it. */
uint8_t *fake_wire_pattern(size_t size, unsigned int seed);

#endif /* FAKE_WIRE_H */
