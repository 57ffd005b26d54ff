/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the units of a worker that work for a session need around them: a session with one context
 * and two streams, markers that are done when a test says so, and a driver that notes down what it
 * is asked for.  Device memory is memory of this process, mapped where the driver is told to, and
 * every operation of a stream is carried out at once.
 */
#ifndef SERVER_FAKE_H
#define SERVER_FAKE_H

#include "server/worker/backlog.h"
#include "server/worker/copy/copy.h"
#include "server/worker/graph/graph.h"
#include "server/worker/image/image.h"
#include "server/worker/memory/array.h"
#include "server/worker/session/context.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

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

struct fake_reply {
	uint16_t call;
	uint32_t request;
	CUresult result;
};

struct fake {
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

	/* What the client sends as a bulk tail. */
	const uint8_t *bulk;

	/* What it gets. */
	uint8_t *data;
	size_t data_size;
	size_t data_room;
	size_t data_before; /* of calls that have been answered */
	unsigned int data_notes;
	struct fake_reply replies[FAKE_REPLIES];
	unsigned int reply_count;
	uint8_t *fields; /* of the last of them */
	size_t fields_size;
	bool keeps_no_replies;
	char printed[FAKE_TEXT];
	char complained[1024];
	char violation[256];
	unsigned int barriers;
};

/* What the driver did, one line per call, since fake_create() or fake_forget_calls(). */
extern char fake_calls[FAKE_TEXT];
/* The driver's next answers to this function: fails once, after `skip` successes. */
void fake_fail(const char *function, CUresult result, unsigned int skip);
void fake_forget_calls(void);
unsigned int fake_count_calls(const char *start);

/* Device memory that the driver has made and not released. */
extern _Atomic int fake_chunks;
extern _Atomic int fake_libraries;
/* Arrays, and texture and surface objects, that it has made and not destroyed. */
extern _Atomic int fake_arrays;
extern _Atomic int fake_textures;
/* Graphs and executables, likewise. */
extern _Atomic int fake_graphs, fake_execs;
/* What the driver prints when it is asked to wait for a stream. */
extern const char *fake_kernel_text;
/* Whether events are complete. */
extern _Atomic bool fake_events_pending;

void fake_create(struct fake *fake);
void fake_destroy(struct fake *fake);
/* What the session is charged for. */
uint64_t fake_allocated(const struct fake *fake, int device);

/* Carries out the markers that are set; -1: all. */
void fake_run_markers(struct fake *fake, int count);
unsigned int fake_markers(const struct fake *fake);

#endif /* SERVER_FAKE_H */
