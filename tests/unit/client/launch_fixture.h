/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of launches, kernel attributes and occupancy: an image (loaded code) with two
 * kernels on the first of two devices, over a scripted daemon (fake_daemon.h).
 *
 * Ownership: `fixture` belongs to the setup and teardown of the test.
 * Threads: the daemon's thread reads the atomic members of `fixture`, the test's thread uses all.
 */
#ifndef LAUNCH_FIXTURE_H
#define LAUNCH_FIXTURE_H

#include "client/module/function.h"
#include "client/module/image.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

/* Maximum dynamic shared memory of a kernel before it is changed, its static shared memory, and
 * the device's maximum, in bytes. */
#define SHARED_DEFAULT 49152
#define SHARED_STATIC 1024
#define SHARED_MOST (227 << 10)
#define NUMBER 3 /* value in the daemon's replies that have a single number */
/* Kernel attribute i has the value FIRST_VALUE + i in the daemon's replies. */
#define FIRST_VALUE 700

/* The test's objects and the settings of the daemon. */
struct fixture {
	struct fake_daemon daemon;
	struct gpc_session *session;
	struct gpc_image image;
	struct gp_image_info info;
	struct gp_kernel_info kernels[2];
	CUfunction kernel, other; /* handles of the two kernels */
	atomic_int refusal;       /* CUresult of launches that wait for their result */
	atomic_uint fewer; /* number of values by which the next reply with several values is too
			      short */
	atomic_uint multiprocessors; /* reply to a query of the multiprocessors; 0:
					CUDA_ERROR_NOT_SUPPORTED */
	atomic_bool share; /* the next reply follows a note that the session's multiprocessor share
			      has changed */
	atomic_bool late;  /* the next reply follows a note that an earlier launch was rejected */
};

extern struct fixture fixture;

/* CMocka setup and teardown of a test; return 0. */
int set_up_launches(void **state);
int tear_down_launches(void **state);
/* Defines a test with this fixture. */
#define LAUNCH_TEST(test) UNIT_TEST_WITH(test, set_up_launches, tear_down_launches)

/* Waits until everything that was posted before has arrived, and returns the number of `call`
 * records that the daemon has received. */
size_t received(uint16_t call);
/* Sets an attribute of the first kernel. Returns the result of cuFuncSetAttribute(). */
CUresult set(CUfunction_attribute attribute, int value);
/* Sets the first kernel's maximum dynamic shared memory in bytes. Returns the result of
 * cuFuncSetAttribute(). */
CUresult allow_shared(int value);
/* Launches a cooperative grid of `grid` blocks with 64 threads. Returns the result of
 * cuLaunchCooperativeKernel(). */
CUresult launch_together(CUfunction kernel, unsigned int grid);

#endif /* LAUNCH_FIXTURE_H */
