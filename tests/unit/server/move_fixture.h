/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests that need real streams and kernels, in particular of moving streams between GPU
 * partitions: a session with the real units of a worker, on the driver that GP_TEST_DRIVER names
 * (the software device or libcuda.so.1).
 *
 * Kernels append numbers to a list in device memory. Streams can be stopped at gates: 1024
 * words in pinned memory, which are 0 while closed.
 * Threads: the test's thread is the executor, the thread that calls the driver.
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

/* IDs of the session's streams: the default stream (LEGACY), two blocking streams (A, B) and one
 * with CU_STREAM_NON_BLOCKING (FREE). */
#define LEGACY 1u
#define A 2u
#define B 3u
#define FREE 4u
/* Number of blocks of the grid that move_spread() launches; more than run at once. */
#define BLOCKS 500u

/* The state of a test. */
struct move_fixture {
	struct gpd_session session;
	struct gpd_stream_session streams;
	struct gpd_ledger *ledger;
	struct gpd_context context;
	/* Number of calls of move_tell(); `result` is the last one's result. */
	_Atomic int told;
	CUresult result;
};

/* Driver functions that the worker does not use, so that gpd_driver does not have them. */
extern struct move_driver {
	__typeof__(cuMemAlloc_v2) *cuMemAlloc_v2;
	__typeof__(cuMemFree_v2) *cuMemFree_v2;
	__typeof__(cuMemcpyDtoH_v2) *cuMemcpyDtoH_v2;
	__typeof__(cuLibraryGetKernel) *cuLibraryGetKernel;
	__typeof__(cuLaunchKernel) *cuLaunchKernel;
	__typeof__(cuStreamWaitValue32_v2) *cuStreamWaitValue32_v2;
} move_driver;

/* Kernels: where(out) stores the number of each block's multiprocessor in an array, append(list,
 * value) appends a value to a list, and spin(word) runs until the word is not 0, for at most some
 * seconds. */
extern CUfunction move_where, move_append, move_spin;
/* Number of multiprocessors of the device. */
extern unsigned int move_all;
/* 1 MiB of device memory, zeroed for each test: the list, a 32-bit length followed by its numbers,
 * and in the second half the results of move_spread(). */
extern CUdeviceptr move_memory;

/* CMocka group setup and teardown; return 0 or -1. The group ends after at most 100 s by
 * SIGALRM. */
int move_start(void **state);
int move_stop(void **state);
/* CMocka setup and teardown of a test; *state is a struct move_fixture. They return 0 or -1. */
int move_setup(void **state);
int move_teardown(void **state);

/* Creates a stream with this ID and CUstream_flags. */
void move_make_stream(struct move_fixture *f, uint32_t id, unsigned int flags);
/* Prepares the stream for work, as every call that uses it does, and returns it. It is borrowed
 * from the session. */
struct gpd_stream *move_begin(struct move_fixture *f, uint32_t id);
/* Launches `blocks` blocks of one thread in the stream. Does not wait. */
void move_launch(CUfunction function, unsigned int blocks, struct gpd_stream *stream,
		 void **params);
/* Appends a value to the list, in the order of the stream. Does not wait. */
void move_append_value(struct move_fixture *f, uint32_t id, unsigned int value);
/* Asserts that the list contains exactly the `count` numbers from `first` on, in order. The work
 * must be complete. */
void move_check_list(unsigned int first, unsigned int count);
/* Returns the number of multiprocessors that a grid in the stream runs on. Waits for the grid. */
unsigned int move_spread(struct move_fixture *f, uint32_t id);

/* Returns the device address of gate i, 0 to 1023: a 32-bit word that is 0 while the gate is closed
 * and 1 once it is open. */
CUdeviceptr move_gate(unsigned int i);
/* Stops the stream until move_open_gate() is called for gate i. Does not wait. */
void move_wait_at_gate(struct move_fixture *f, uint32_t id, unsigned int i);
/* Opens gate i, for all streams that wait there. Each test starts with closed gates. */
void move_open_gate(unsigned int i);

/* Limits the session to this number of multiprocessors; 0: no limit. */
void move_set_share(struct move_fixture *f, uint32_t multiprocessors);

/* Waits at most 5 s until all work of the session's streams is complete, as a client would. */
void move_synchronize(struct move_fixture *f);
/* A gpd_wait_done callback, which counts its calls and stores the result; `arg` is the fixture. */
void move_tell(struct gpd_session *session, void *arg, CUresult result);
/* Returns whether move_tell() was called once. */
bool move_is_told(struct move_fixture *f);
/* Destroys streams that have finished, and returns whether no destroyed stream still has work. */
bool move_none_is_leaving(struct move_fixture *f);
/* Waits at most 5 s until the condition holds. Returns whether it did. */
bool move_within_seconds(bool (*holds)(struct move_fixture *f), struct move_fixture *f);

#endif /* MOVE_FIXTURE_H */
