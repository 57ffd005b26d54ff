/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of launches, kernel attributes and occupancy: an image with two kernels on the
 * first of two devices, over a scripted daemon (fake_daemon.h).
 *
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

#define SHARED_DEFAULT 49152
#define SHARED_STATIC 1024
#define SHARED_MOST (227 << 10)
#define NUMBER 3 /* value in the daemon's replies */
#define FIRST_VALUE 700

struct fixture {
	struct fake_daemon daemon;
	struct gpc_session *session;
	struct gpc_image image;
	struct gp_image_info info;
	struct gp_kernel_info kernels[2];
	CUfunction kernel, other;
	atomic_int refusal;          /* result of launches that wait */
	atomic_uint fewer;           /* number of values missing in the next reply */
	atomic_uint multiprocessors; /* 0: the daemon does not report it */
	atomic_bool
		share; /* the next reply follows a note that the multiprocessor share has changed */
	atomic_bool late; /* the next reply follows a note that a launch was rejected */
};

extern struct fixture fixture;

int set_up_launches(void **state);
int tear_down_launches(void **state);
#define LAUNCH_TEST(test) UNIT_TEST_WITH(test, set_up_launches, tear_down_launches)

/* Returns the number of `call` records that the daemon has received, after everything posted before
 * has arrived. */
size_t received(uint16_t call);
/* Set an attribute of the first kernel. */
CUresult set(CUfunction_attribute attribute, int value);
CUresult allow_shared(int value);
/* Launches a cooperative grid. */
CUresult launch_together(CUfunction kernel, unsigned int grid);

#endif /* LAUNCH_FIXTURE_H */
