/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the units of a worker that work for a session need around them: a session with one context
 * and two streams, markers that are done when a test says so, and a driver that notes down what it
 * is asked for.  Device memory is memory of this process, mapped where the driver is told to, and
 * every operation of a stream is carried out at once.
 */
#ifndef FAKE_SESSION_H
#define FAKE_SESSION_H

#include "server/worker/image/image.h"
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

struct fake_session_reply {
	uint16_t call;
	uint32_t request;
	CUresult result;
};

struct fake_session {
	struct gpd_session session;
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
	struct fake_session_reply replies[FAKE_REPLIES];
	unsigned int reply_count;
	uint8_t *fields; /* of the last of them */
	size_t fields_size;
	bool keeps_no_replies;
	char printed[FAKE_TEXT];
	char complained[1024];
	char violation[256];
	unsigned int barriers;
};

/* What the driver did, one line per call, since fake_session_create() or fake_driver_clear_calls().
 */
extern char fake_driver_calls[FAKE_TEXT];
/* The driver's next answers to this function: fails once, after `skip` successes. */
void fake_driver_fail(const char *function, CUresult result, unsigned int skip);
void fake_driver_clear_calls(void);
unsigned int fake_driver_count_calls(const char *start);

/* Device memory that the driver has made and not released. */
extern _Atomic int fake_driver_chunks;
extern _Atomic int fake_driver_libraries;
/* Arrays, and texture and surface objects, that it has made and not destroyed. */
extern _Atomic int fake_driver_arrays;
extern _Atomic int fake_driver_textures;
/* Graphs and executables, likewise. */
extern _Atomic int fake_driver_graphs, fake_driver_execs;
/* What the driver prints when it is asked to wait for a stream. */
extern const char *fake_driver_kernel_text;
/* Whether events are complete. */
extern _Atomic bool fake_driver_events_pending;

void fake_session_create(struct fake_session *fake);
void fake_session_destroy(struct fake_session *fake);
/* What the session is charged for. */
uint64_t fake_session_allocated(const struct fake_session *fake, int device);

/* Carries out the markers that are set; -1: all. */
void fake_session_run_markers(struct fake_session *fake, int count);
unsigned int fake_session_markers(const struct fake_session *fake);

#endif /* FAKE_SESSION_H */
