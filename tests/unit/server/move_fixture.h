/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session with the real units of a worker, on the driver that GP_TEST_DRIVER names: the software
 * device, or libcuda.so.1.  The test's thread is the executor; kernels append to a list in device
 * memory, and streams wait at gates in pinned memory.
 */
#ifndef MOVE_FIXTURE_H
#define MOVE_FIXTURE_H

#include "server/worker/device/driver.h"
#include "server/worker/session/context.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The session's streams, as the client names them. */
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

/* Of the driver, what the worker does not use. */
extern struct move_driver {
	__typeof__(cuMemAlloc_v2) *cuMemAlloc_v2;
	__typeof__(cuMemFree_v2) *cuMemFree_v2;
	__typeof__(cuMemcpyDtoH_v2) *cuMemcpyDtoH_v2;
	__typeof__(cuLibraryGetKernel) *cuLibraryGetKernel;
	__typeof__(cuLaunchKernel) *cuLaunchKernel;
	__typeof__(cuStreamWaitValue32_v2) *cuStreamWaitValue32_v2;
} move_driver;

/* where(out): each block's multiprocessor; append(list, value); spin(word): until it is not 0. */
extern CUfunction move_where, move_append, move_spin;
extern unsigned int move_all; /* multiprocessors */
extern CUdeviceptr move_memory;

/* Group setup and teardown, and those of each test, whose state is a struct move_fixture. */
int move_start(void **state);
int move_stop(void **state);
int move_setup(void **state);
int move_teardown(void **state);

void move_make_stream(struct move_fixture *f, uint32_t id, unsigned int flags);
struct gpd_stream *move_begin(struct move_fixture *f, uint32_t id);
void move_launch(CUfunction function, unsigned int blocks, struct gpd_stream *stream,
		 void **params);
void move_append_value(struct move_fixture *f, uint32_t id, unsigned int value);
/* The list holds so many numbers from `first` on, in order. */
void move_check_list(unsigned int first, unsigned int count);
/* On how many multiprocessors a grid in that stream runs. */
unsigned int move_spread(struct move_fixture *f, uint32_t id);

CUdeviceptr move_gate(unsigned int i);
/* The stream does nothing more until the gate is opened. */
void move_wait_at_gate(struct move_fixture *f, uint32_t id, unsigned int i);
void move_open_gate(unsigned int i);

void move_set_share(struct move_fixture *f, uint32_t multiprocessors);

/* Waits for all that the session's streams were given, as a client would. */
void move_synchronize(struct move_fixture *f);
/* A gpd_wait_done whose arg is the fixture. */
void move_tell(struct gpd_session *session, void *arg, CUresult result);
bool move_is_told(struct move_fixture *f);
bool move_none_is_leaving(struct move_fixture *f);
bool move_within_seconds(bool (*holds)(struct move_fixture *f), struct move_fixture *f);

#endif /* MOVE_FIXTURE_H */
