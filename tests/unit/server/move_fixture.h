/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests that need real streams and kernels: a session with the real units of a worker,
 * on the driver that GP_TEST_DRIVER names (the software device or libcuda.so.1).
 *
 * Kernels append numbers to a list in device memory. Streams can be stopped at gates, which are
 * words in pinned memory.
 * Threads: the test's thread is the executor.
 * Errors: failed calls fail the test.
 */
#ifndef MOVE_FIXTURE_H
#define MOVE_FIXTURE_H

#include "server/worker/context/context.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Stream IDs of the session. */
#define LEGACY 1u
#define A 2u
#define B 3u
#define FREE 4u
#define BLOCKS 500u

struct move_fixture {
	struct gpd_session session;
	struct gpd_stream_session streams;
	struct gpd_ledger *ledger;
	struct gpd_context context;
	_Atomic int told;
	CUresult result;
};

/* Driver functions that the worker itself does not use. */
extern struct move_driver {
	__typeof__(cuMemAlloc_v2) *cuMemAlloc_v2;
	__typeof__(cuMemFree_v2) *cuMemFree_v2;
	__typeof__(cuMemcpyDtoH_v2) *cuMemcpyDtoH_v2;
	__typeof__(cuLibraryGetKernel) *cuLibraryGetKernel;
	__typeof__(cuLaunchKernel) *cuLaunchKernel;
	__typeof__(cuStreamWaitValue32_v2) *cuStreamWaitValue32_v2;
} move_driver;

/* Kernels: where(out) stores each block's multiprocessor, append(list, value) appends to a list,
 * and spin(word) runs until the word is not 0. */
extern CUfunction move_where, move_append, move_spin;
extern unsigned int move_all; /* number of multiprocessors */
extern CUdeviceptr move_memory;

/* Group setup and teardown, and setup and teardown of each test, which has a struct move_fixture as
 * its state. */
int move_start(void **state);
int move_stop(void **state);
int move_setup(void **state);
int move_teardown(void **state);

void move_make_stream(struct move_fixture *f, uint32_t id, unsigned int flags);
struct gpd_stream *move_begin(struct move_fixture *f, uint32_t id);
void move_launch(CUfunction function, unsigned int blocks, struct gpd_stream *stream,
		 void **params);
void move_append_value(struct move_fixture *f, uint32_t id, unsigned int value);
/* Asserts that the list contains the `count` numbers from `first` on, in order. */
void move_check_list(unsigned int first, unsigned int count);
/* Returns the number of multiprocessors that a grid in that stream runs on. */
unsigned int move_spread(struct move_fixture *f, uint32_t id);

CUdeviceptr move_gate(unsigned int i);
/* Stops the stream until move_open_gate() is called for this gate. */
void move_wait_at_gate(struct move_fixture *f, uint32_t id, unsigned int i);
void move_open_gate(unsigned int i);

void move_set_share(struct move_fixture *f, uint32_t multiprocessors);

/* Waits until all work of the session's streams is done, as a client would. */
void move_synchronize(struct move_fixture *f);
/* A gpd_wait_done callback; `arg` is the fixture. */
void move_tell(struct gpd_session *session, void *arg, CUresult result);
bool move_is_told(struct move_fixture *f);
bool move_none_is_leaving(struct move_fixture *f);
bool move_within_seconds(bool (*holds)(struct move_fixture *f), struct move_fixture *f);

#endif /* MOVE_FIXTURE_H */
