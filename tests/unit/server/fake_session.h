/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake session of a worker, with one context and two streams, for tests of units that serve a
 * session's calls.
 *
 * It replaces the worker around the tested unit: a test supplies the bytes that the client sends
 * (`bulk`), reads the replies, data and messages that the client would receive, and decides when
 * stream markers complete (fake_session_run_markers()). The CUDA driver is replaced too
 * (fake_driver.c). It logs each call in fake_driver_calls and executes each stream operation at
 * once, on memory of this process that is mapped at the addresses of the window.
 * Ownership: fake_session_create() creates all, and fake_session_destroy() frees it. Objects that
 * the tested unit has created are counted (fake_driver_chunks and others), so that a test can check
 * for leaks.
 * Threads: the driver and its counters may be used by any thread, the session by the test's thread.
 * Errors: what cannot be set up fails the test.
 */
#ifndef FAKE_SESSION_H
#define FAKE_SESSION_H

#include "server/worker/array/array.h"
#include "server/worker/context/context.h"
#include "server/worker/copy/copy.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/module/image.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_queue.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_GRANULE ((uint64_t)2 << 20)
#ifdef __SANITIZE_THREAD__
#define FAKE_WINDOW ((uint64_t)0x552000000000)
#else
#define FAKE_WINDOW ((uint64_t)0x120000000000)
#endif
#define FAKE_WINDOW_SIZE ((uint64_t)1 << 30)
#define FAKE_STREAM 5
#define FAKE_OTHER_STREAM 6
#define FAKE_CONTEXT 3
#define FAKE_TEXT ((size_t)1 << 16)

#define FAKE_REPLIES 16

struct fake_session_reply {
	uint16_t call;
	uint32_t request;
	CUresult result;
};

struct fake_session {
	struct gpd_session session;
	struct gpd_stream_ops_session stream_ops; /* parts of the session */
	struct gpd_array_session arrays;
	struct gpd_stream_session streams;
	struct gpd_copy_session copies;
	struct gpd_module_session modules;
	struct gpd_graph_session graphs;
	struct gpd_ledger *ledger;
	struct gpd_context context;
	struct gpd_stream stream, other;

	/* The bulk bytes of the client's next call. */
	const uint8_t *bulk;

	/* What the client has received. */
	uint8_t *data;
	size_t data_size;
	size_t data_room;
	size_t data_before; /* bytes of calls that have been answered */
	unsigned int data_notes;
	struct fake_session_reply replies[FAKE_REPLIES];
	unsigned int reply_count;
	uint8_t *fields; /* reply fields of the last call */
	size_t fields_size;
	bool keeps_no_replies;
	char printed[FAKE_TEXT];
	char complained[1024];
	char violation[256];
	unsigned int barriers;
};

/* Log of the driver's calls, one line per call, since fake_session_create() or
 * fake_driver_clear_calls(). */
extern char fake_driver_calls[FAKE_TEXT];
/* Makes one call of this driver function fail with `result`, after `skip` successful calls. */
void fake_driver_fail(const char *function, CUresult result, unsigned int skip);
void fake_driver_clear_calls(void);
unsigned int fake_driver_count_calls(const char *start);

/* Number of physical allocations and of libraries that exist in the driver. */
extern _Atomic int fake_driver_chunks;
extern _Atomic int fake_driver_libraries;
/* Number of arrays, and of texture and surface objects, that exist in the driver. */
extern _Atomic int fake_driver_arrays;
extern _Atomic int fake_driver_textures;
/* Number of graphs and of executable graphs that exist in the driver. */
extern _Atomic int fake_driver_graphs, fake_driver_execs;
/* Output of kernels, which the driver prints during the next wait for a stream. NULL: none. */
extern const char *fake_driver_kernel_text;
/* While true, cuEventQuery() reports that events are not complete. */
extern _Atomic bool fake_driver_events_pending;

void fake_session_create(struct fake_session *fake);
void fake_session_destroy(struct fake_session *fake);
/* Returns the bytes of device memory that the session is charged for. */
uint64_t fake_session_allocated(const struct fake_session *fake, int device);

/* Completes the oldest `count` markers, or all with -1. */
void fake_session_run_markers(struct fake_session *fake, int count);
unsigned int fake_session_markers(const struct fake_session *fake);

#endif /* FAKE_SESSION_H */
