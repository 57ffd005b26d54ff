/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake wire layer of the client, for tests of memory, copies, host memory and pools, which are
 * above it.
 *
 * It replaces gpc_call(), gpc_post(), data lanes and the daemon. Calls are carried out in this
 * process, on a device whose memory is a buffer. The addresses of the window itself are not
 * accessible, as with a remote device. Tests set members of `fake` to choose replies and failures,
 * and read its counters of calls.
 * Ownership: fake_wire_setup() and fake_wire_teardown() create and free everything for one test,
 * see FAKE_WIRE_TEST().
 * Threads: calls may come from several threads. Requests with a reply are queued;
 * fake_wire_deliver() completes them, as the thread that reads the connection does.
 * Errors: misuse by the tested code, for example an access to memory that is not mapped, fails the
 * test.
 */
#ifndef FAKE_WIRE_H
#define FAKE_WIRE_H

#include "client/context/context.h"
#include "client/session/call.h"
#include "client/session/host_queue.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"
#include "tests/test.h"

#include <cuda.h>
#include <stdbool.h>

#define FAKE_WIRE_MIB ((size_t)1 << 20)
#define FAKE_WIRE_WINDOW (512 * FAKE_WIRE_MIB)
/* Address range of reservations outside the window, see server/worker/device/window.h. */
#ifdef __SANITIZE_THREAD__
#define FAKE_WIRE_BESIDES ((uint64_t)0x551000000000)
#else
#define FAKE_WIRE_BESIDES ((uint64_t)0x310000000000)
#endif
/* Address range of host memory that kernels access. */
#define FAKE_WIRE_HOST (FAKE_WIRE_BESIDES + ((uint64_t)1 << 38))
#define FAKE_WIRE_GRANULE (2 * FAKE_WIRE_MIB)
#define FAKE_WIRE_STREAM ((CUstream)(uintptr_t)0x5757)

/* Asserts that a call succeeds, or that it rejects its arguments. */
#define CU(call) assert_int_equal(call, CUDA_SUCCESS)
#define INVALID(call) assert_int_equal(call, CUDA_ERROR_INVALID_VALUE)

struct gpc_session_hooks;

struct fake_wire {
	uint64_t window;
	uint8_t *device; /* contents of the window */
	uint64_t quota;
	uint64_t mapped; /* bytes */
	bool lanes;      /* the session has data lanes, from which copies receive no bytes */
	bool lazy;       /* copies to the host arrive only when the client waits */
	bool busy;       /* the GPU makes progress only when the client waits for it */
	CUresult enter;  /* result of gpc_enter() */
	CUresult copy_out_result;
	bool copy_out_short; /* replies of copies to the host carry no bytes */
	bool has_functions;  /* host functions are pending */
	bool foreign_wait;   /* the stream waits for an event of another process */
	CUresult pending;    /* error of a posted call, reported by the next call that waits */
	CUresult deferred;
	CUresult failed;
	uint64_t posted, done;
	uint64_t allowance; /* included in `mapped` */
	uint64_t told_kept;
	/* Numbers of calls. */
	int replacements, grants, uses, copies_in_short, maps, unmaps, fences, waits, copies_in,
		barriers, copies_out, copies_out_lanes, ordered, copies_device, fills, syncs, keeps,
		kept;
	size_t largest_copy_in;
	void (*array_destroyed)(
		void); /* if set, called when an array is destroyed, as another thread would */
	int objects;   /* texture and surface objects that exist */
	bool sparse;   /* the device supports sparse arrays; `parts` tiles were requested */
	int parts, part_calls;
	int arrays_made;   /* created from the allowance */
	int shares, opens; /* exports that exist now, and opened imports */
	/* Reservations outside the window: requested and existing. */
	int reserves, reserved;
	CUresult reserve_result;
	/* Host memory that kernels access, see fake_wire_allow_host(). */
	bool shares_memory;
	uint64_t host_quota, host_written;
	/* Listed copies: the number of the last copy; of the last replacement its number, its last
	 * byte and the host bytes that were written before it; and the bytes of all
	 * replacements. */
	uint32_t last_listed, last_replaced;
	uint8_t last_replaced_byte;
	uint64_t replaced_before, replaced_bytes;
	int host_reserves, host_maps, host_fetches, host_behinds;
	int host_busy; /* number of further gpHostMap calls that fail because the address range is
			  in use */
	void (*meanwhile)(
		void); /* if set, called once, before the next reply to a call that waits */
	struct gpc_host_call late[4]; /* host functions that wait for their turn in the stream */
	int late_count;
	const struct gpc_session_hooks *hooks;
	struct gpc_session_facts *facts;
	struct gpc_context *context;
	struct gpc_stream *stream; /* the only stream besides the default one */
	struct gpc_stream *legacy;
};

extern struct fake_wire fake;

int fake_wire_setup(void **state);
int fake_wire_teardown(void **state);
#define FAKE_WIRE_TEST(test) UNIT_TEST_WITH(test, fake_wire_setup, fake_wire_teardown)

/* Queues the reply to a request. Takes ownership of `bytes`, which malloc() has allocated. */
void fake_wire_start(struct gpc_request *request, uint8_t *bytes, uint64_t size, CUresult result);

/* Makes the daemon support late copies. */
void fake_wire_allow_late(void);
/* Runs the oldest pending host function; with an error, the session has failed instead. */
void fake_wire_run_late(CUresult result);

/* Returns the number of arrays after the client has released its cached ones. */
int fake_wire_arrays(void);

/* Completes all queued requests, as the thread that reads the connection does. */
void fake_wire_deliver(void);
/* Returns whether no request is queued. */
bool fake_wire_is_idle(void);

/* Completes the client's pending gpMemoryKeep request, so that the client releases its cached
 * memory. */
void fake_wire_recall(void);
/* Makes the daemon support allowances (gpMemoryGrant). A request without a waiter is completed
 * before the next request. */
void fake_wire_allow_credit(void);
/* Returns the mapped bytes after the client has released its cached memory. */
uint64_t fake_wire_mapped(void);

/* Makes the daemon support host memory that kernels access, or not. */
void fake_wire_allow_host(void);
void fake_wire_forbid_host(void);
/* Host memory as a kernel would see it: whether a range is mapped, its contents, and the bytes that
 * are mapped in all. */
bool fake_wire_host_has(uint64_t address, uint64_t size);
uint8_t *fake_wire_host_at(uint64_t address);
uint64_t fake_wire_host_mapped(void);
/* Returns whether gpHostPlace has placed the range, and unmaps it then. */
bool fake_wire_host_displace(uint64_t address, uint64_t size);
/* If the request is a gpHostTakeBehind, builds its reply from the current contents of host
 * memory. */
void fake_wire_host_look(struct gpc_request *request);

/* Increments a counter that several threads use. */
static inline void
fake_wire_count(int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Asserts that the whole range is mapped. */
void fake_wire_expect_mapped(uint64_t address, uint64_t size);
/* Asserts that nothing but the allowance is mapped. */
void fake_wire_memory_end(void);

/* Returns a copy of a call's bulk bytes, of which there must be `size`. The caller frees it. */
uint8_t *fake_wire_gather(const struct iovec *bulk, int bulk_count, uint64_t size);

/* Returns the contents of device memory at this address, as a kernel would see them. */
uint8_t *fake_wire_at(CUdeviceptr address);

/* Returns new device memory, or fails the test. */
CUdeviceptr fake_wire_alloc(size_t size);
/* Returns a new buffer filled with a pattern that depends on the seed. The caller frees it. */
uint8_t *fake_wire_pattern(size_t size, unsigned int seed);

#endif /* FAKE_WIRE_H */
