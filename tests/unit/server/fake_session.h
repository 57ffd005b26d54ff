/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fake session of a worker, with one context and two streams, for tests of units that serve a
 * session's calls.
 *
 * It replaces the worker around the tested unit: a test supplies the bytes that the client sends
 * (`bulk`), reads the replies, data and messages that the client would receive, and decides with
 * fake_session_run_markers() when stream markers complete. A marker is a request of the worker to
 * be notified when a stream has reached it. The CUDA driver is replaced too (fake_driver.c). It
 * logs each call in fake_driver_calls and executes each stream operation at once, on memory of this
 * process that is mapped at the addresses of the window.
 * Ownership: the test owns struct fake_session. fake_session_create() initializes it, and
 * fake_session_destroy() frees what it contains. Objects that the tested unit has created are
 * counted (fake_driver_chunks and others), so that a test can check for leaks.
 * Threads: the driver and its counters may be used by any thread, the session by the test's thread
 * only.
 * Errors: failures of the set-up abort the test.
 * Units: sizes are in bytes.
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

/* Granularity of physical memory. */
#define FAKE_GRANULE ((uint64_t)2 << 20)
#ifdef __SANITIZE_THREAD__
/* Address of the window, the range of the session's device memory. */
#define FAKE_WINDOW ((uint64_t)0x552000000000)
#else
#define FAKE_WINDOW ((uint64_t)0x120000000000)
#endif
#define FAKE_WINDOW_SIZE ((uint64_t)1 << 30)
/* Handle IDs of the session's streams and context. The first stream is the default stream. */
#define FAKE_STREAM 5
#define FAKE_OTHER_STREAM 6
#define FAKE_CONTEXT 3
/* Capacity of the logs. */
#define FAKE_TEXT ((size_t)1 << 16)

/* Number of replies that are stored; later ones overwrite the oldest. */
#define FAKE_REPLIES 16

/* A reply that the client has received: its call and request ID, and its result. */
struct fake_session_reply {
	uint16_t call;
	uint32_t request;
	CUresult result;
};

struct fake_session {
	struct gpd_session session;
	struct gpd_stream_ops_session stream_ops; /* Parts of `session`. */
	struct gpd_array_session arrays;
	struct gpd_stream_session streams;
	struct gpd_copy_session copies;
	struct gpd_module_session modules;
	struct gpd_graph_session graphs;
	struct gpd_ledger *ledger;
	struct gpd_context context;
	struct gpd_stream stream, other;

	/* The bulk bytes of the client's next call. Borrowed; the test also sets
	 * session.current.bulk_left to their number. */
	const uint8_t *bulk;

	/* What the client has received: `data_size` bytes of data, for which memory of data_room
	 * bytes is allocated. */
	uint8_t *data;
	size_t data_size;
	size_t data_room;
	size_t data_before;      /* bytes of data that belong to calls with a reply */
	unsigned int data_notes; /* number of messages with data */
	struct fake_session_reply replies[FAKE_REPLIES];
	unsigned int reply_count; /* number of replies received */
	uint8_t *fields;          /* reply fields of the last call, allocated */
	size_t fields_size;
	bool keeps_no_replies;   /* set by a test: replies are not stored */
	char printed[FAKE_TEXT]; /* output of kernels */
	char complained[1024];   /* messages for the client's user */
	char violation[256];     /* last protocol violation; empty: none */
	unsigned int barriers;   /* number of gpd_stream_barrier() calls */
};

/* Log of the driver's calls, one line per call, since fake_session_create() or
 * fake_driver_clear_calls(). Driver threads append to it under a lock; tests read it when no other
 * thread runs. */
extern char fake_driver_calls[FAKE_TEXT];
/* Makes one call whose log line starts with `function` fail with `result`, after `skip` successful
 * ones. Replaces an earlier setting. */
void fake_driver_fail(const char *function, CUresult result, unsigned int skip);
/* Empties the log. */
void fake_driver_clear_calls(void);
/* Returns the number of lines in the log that start with `start`. */
unsigned int fake_driver_count_calls(const char *start);

/* Numbers of physical allocations and of libraries that exist in the driver. */
extern _Atomic int fake_driver_chunks;
extern _Atomic int fake_driver_libraries;
/* Numbers of arrays, and of texture and surface objects, that exist in the driver. */
extern _Atomic int fake_driver_arrays;
extern _Atomic int fake_driver_textures;
/* Numbers of graphs and of executable graphs that exist in the driver. */
extern _Atomic int fake_driver_graphs, fake_driver_execs;
/* Output of kernels, which the driver prints once, during the next wait for a stream. Borrowed.
 * NULL: none. */
extern const char *fake_driver_kernel_text;
/* While true, cuEventQuery() reports that events are not complete. */
extern _Atomic bool fake_driver_events_pending;

/* Initializes the session and installs a new fake driver with two devices. The struct's contents
 * before the call do not matter. */
void fake_session_create(struct fake_session *fake);
/* Frees the session's contents. The tested unit must have freed its own. */
void fake_session_destroy(struct fake_session *fake);
/* Returns the bytes of a device's memory that the session is charged for. */
uint64_t fake_session_allocated(const struct fake_session *fake, int device);

/* Completes the oldest `count` markers, or all with -1, and calls their functions. Completes fewer
 * if there are not so many. */
void fake_session_run_markers(struct fake_session *fake, int count);
/* Returns the number of markers that are not complete. */
unsigned int fake_session_markers(const struct fake_session *fake);

#endif /* FAKE_SESSION_H */
