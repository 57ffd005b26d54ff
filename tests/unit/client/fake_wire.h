/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake wire layer of the client, for tests of memory, copies, host memory and pools, which are
 * above it.
 *
 * It replaces the functions that send calls to the daemon (gpc_call(), gpc_post()), the data lanes
 * (connections for bulk data) and the daemon itself. Calls are carried out in this process, on a
 * device whose memory is a buffer. The window, the address range of device memory, is not
 * accessible at its own addresses, as with a remote device. Tests set members of `fake` to choose
 * replies and failures, and read its counters of calls.
 * Ownership: fake_wire_setup() and fake_wire_teardown() create and free everything for one test,
 * see FAKE_WIRE_TEST().
 * Threads: calls may come from several threads. Requests with a reply are queued under a lock;
 * fake_wire_deliver() completes them, as the thread that reads the connection does. Tests set
 * members of `fake` while no other thread runs.
 * Errors: misuse by the tested code, for example an access to memory that is not mapped, fails the
 * test.
 * Units: sizes are in bytes.
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
/* Size of the window. */
#define FAKE_WIRE_WINDOW (512 * FAKE_WIRE_MIB)
/* Address range of reservations outside the window, see server/worker/device/window.h. */
#ifdef __SANITIZE_THREAD__
#define FAKE_WIRE_BESIDES ((uint64_t)0x551000000000)
#else
#define FAKE_WIRE_BESIDES ((uint64_t)0x310000000000)
#endif
/* First address of host memory that kernels access. */
#define FAKE_WIRE_HOST (FAKE_WIRE_BESIDES + ((uint64_t)1 << 38))
/* Granularity of mappings in the window. */
#define FAKE_WIRE_GRANULE (2 * FAKE_WIRE_MIB)
/* A handle of the only stream besides the default one. */
#define FAKE_WIRE_STREAM ((CUstream)(uintptr_t)0x5757)

/* Assert that a call returns CUDA_SUCCESS, or that it rejects its arguments. */
#define CU(call) assert_int_equal(call, CUDA_SUCCESS)
#define INVALID(call) assert_int_equal(call, CUDA_ERROR_INVALID_VALUE)

struct gpc_session_callbacks;

/* State of the fake. Members that are 0 have no effect unless their comment says otherwise. */
struct fake_wire {
	uint64_t window; /* address of the window */
	uint8_t *device; /* contents of the window */
	uint64_t quota;  /* limit of `mapped`; initially the window's size */
	uint64_t mapped; /* bytes of device memory that are mapped or granted as allowance */
	bool lanes;      /* the session has data lanes, over which no bytes arrive */
	bool lazy; /* replies with data, and those of host memory, arrive only when the client waits
		      or the test calls fake_wire_deliver() */
	bool busy; /* polling a request does not complete it: the GPU makes progress only when the
		      client waits */
	CUresult enter;           /* result of gpc_enter(), the check at the start of a call */
	CUresult copy_out_result; /* result of copies to the host */
	bool copy_out_short;      /* replies of copies to the host carry no bytes */
	bool has_functions;       /* host functions are pending in the stream */
	bool foreign_wait;        /* the stream waits for an event of another process */
	/* Error of an earlier posted call, returned by the next call that waits. */
	CUresult pending;
	CUresult deferred; /* error that the client has stored for a later call */
	CUresult failed;   /* error with which the client has ended the session */
	/* Numbers of calls that were posted, and that the client knows to be complete. */
	uint64_t posted, done;
	uint64_t allowance; /* bytes of memory that the daemon has granted in advance; included in
			       `mapped` */
	/* Bytes of cached memory that the client has last reported (gpMemoryCountKept). */
	uint64_t told_kept;
	/* Numbers of calls since the setup, named after the calls. `waits` counts gpFence with a
	 * waiter and `fences` without, `syncs` cuStreamSynchronize, `barriers` copies with
	 * GP_COPY_BARRIER, `uses` gpMemoryUse and gpMemoryMake. */
	int replacements, grants, uses, copies_in_short, maps, unmaps, fences, waits, copies_in,
		barriers, copies_out, copies_out_lanes, ordered, copies_device, fills, syncs, keeps,
		kept;
	size_t largest_copy_in;
	void (*array_destroyed)(void); /* if set, called during the destruction of an array, for
					  actions of another thread */
	int objects;                   /* number of texture and surface objects that exist */
	bool sparse;                   /* the device supports sparse arrays */
	/* Numbers of tiles of sparse arrays that were requested, and of the calls that requested
	 * them. */
	int parts, part_calls;
	int arrays_made; /* number of arrays that were created from the allowance */
	/* Numbers of exports (IPC) that exist, and of imports that were opened. */
	int shares, opens;
	/* Reservations of addresses outside the window: number requested, and number that exist. */
	int reserves, reserved;
	CUresult reserve_result; /* result of the next reservations */
	/* Host memory that kernels access, see fake_wire_allow_host(): whether client and daemon
	 * share its pages, the limit of its mapped bytes, and the bytes that the client has written
	 * to it. */
	bool shares_memory;
	uint64_t host_quota, host_written;
	/* Listed copies: copies to the device that carry a number, by which a later call can
	 * replace their bytes. last_listed is the number of the last copy. Of the last replacement:
	 * its number, its last byte, and host_written at that time; replaced_bytes is the sum of
	 * all replacements. */
	uint32_t last_listed, last_replaced;
	uint8_t last_replaced_byte;
	uint64_t replaced_before, replaced_bytes;
	int host_reserves, host_maps, host_fetches, host_behinds;
	int host_busy; /* number of further gpHostMap calls that fail with CUDA_ERROR_NOT_READY
			  because the address range is in use */
	void (*meanwhile)(
		void); /* if set, called once, before the next incomplete request is waited for */
	/* Host functions that the stream has not reached, oldest first. */
	struct gpc_host_call late[4];
	int late_count;
	/* The callbacks that the host memory code has registered with the session, borrowed. */
	const struct gpc_session_callbacks *callbacks;
	struct gpc_session_facts *facts;
	struct gpc_context *context;
	struct gpc_stream *stream; /* the only stream besides the default one */
	struct gpc_stream *legacy; /* the default stream */
};

extern struct fake_wire fake;

/* CMocka setup and teardown of a test; return 0. */
int fake_wire_setup(void **state);
int fake_wire_teardown(void **state);
/* Defines a test with the fake wire layer. */
#define FAKE_WIRE_TEST(test) UNIT_TEST_WITH(test, fake_wire_setup, fake_wire_teardown)

/* Queues the reply to a request: `size` bytes of data, which may be 0, and a result. Takes
 * ownership of `bytes`, which malloc() has allocated; NULL: no data. Completes it at once unless
 * fake.lazy is set. */
void fake_wire_start(struct gpc_request *request, uint8_t *bytes, uint64_t size, CUresult result);

/* Makes the daemon support host functions and copies whose bytes the client sends only when the
 * stream reaches them (GP_FEATURE_LATE). */
void fake_wire_allow_late(void);
/* Calls the oldest pending host function, as the stream does when it reaches it. CUDA_SUCCESS: it
 * runs; an error: the session has failed, and the function is only released. */
void fake_wire_run_late(CUresult result);

/* Makes the client release its cached arrays, and returns the number of arrays that exist then. */
int fake_wire_arrays(void);

/* Completes all queued requests, as the thread that reads the connection does. Does nothing if none
 * is queued. */
void fake_wire_deliver(void);
/* Returns whether no request is queued. */
bool fake_wire_is_idle(void);

/* Completes the client's pending gpMemoryKeep request, by which the daemon takes back cached
 * memory, so that the client releases it. There must be such a request. */
void fake_wire_recall(void);
/* Makes the daemon support allowances: memory that it grants in advance (gpMemoryGrant). A request
 * without a waiter is completed before the next request. */
void fake_wire_allow_credit(void);
/* Makes the client release its cached memory if it has any, and returns fake.mapped. */
uint64_t fake_wire_mapped(void);

/* Make the daemon support host memory that kernels access, or not. */
void fake_wire_allow_host(void);
void fake_wire_forbid_host(void);
/* Host memory as a kernel would see it. fake_wire_host_has() returns whether the whole range is
 * mapped. */
bool fake_wire_host_has(uint64_t address, uint64_t size);
/* Returns a pointer to the contents at this address, which must be mapped. It is valid until the
 * range is unmapped. */
uint8_t *fake_wire_host_at(uint64_t address);
/* Returns the number of mapped bytes. */
uint64_t fake_wire_host_mapped(void);
/* Unmaps the range if gpHostPlace, which maps host memory inside the window, has mapped it. Returns
 * whether it had. */
bool fake_wire_host_displace(uint64_t address, uint64_t size);
/* If the request is a gpHostTakeBehind (a copy of changed host memory after earlier work of a
 * stream), builds its reply from the current contents. Does nothing for other requests. */
void fake_wire_host_look(struct gpc_request *request);

/* Increments a counter that several threads use. */
static inline void
fake_wire_count(int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Fails the test unless the whole range is mapped. */
void fake_wire_expect_mapped(uint64_t address, uint64_t size);
/* Fails the test if device memory other than the allowance is mapped. */
void fake_wire_memory_end(void);

/* Returns a copy of a call's bulk bytes, which must be `size` in all. The caller frees it. */
uint8_t *fake_wire_gather(const struct iovec *bulk, int bulk_count, uint64_t size);

/* Returns a pointer to the contents of device memory at an address of the window, as a kernel would
 * see them. It is valid until the teardown. */
uint8_t *fake_wire_at(CUdeviceptr address);

/* Returns the address of new device memory, which the caller frees with gpc_cuMemFree_v2(), or
 * fails the test. */
CUdeviceptr fake_wire_alloc(size_t size);
/* Returns a new buffer filled with a pattern that depends on the seed. The caller frees it. */
uint8_t *fake_wire_pattern(size_t size, unsigned int seed);

#endif /* FAKE_WIRE_H */
