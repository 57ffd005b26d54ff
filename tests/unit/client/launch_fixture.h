/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of launches, of kernels' settings and of occupancy have in common: an image of two
 * kernels on the first of two devices, whose daemon is scripted.  The fixture is the case's that
 * runs; the daemon's thread reads its atomic members.
 */
#ifndef LAUNCH_FIXTURE_H
#define LAUNCH_FIXTURE_H

#include "client/code/function.h"
#include "client/code/image.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#define SHARED_DEFAULT 49152
#define SHARED_STATIC 1024
#define SHARED_MOST (227 << 10)
#define NUMBER 3 /* what the daemon answers */
#define FIRST_VALUE 700

struct fixture {
	struct fake_daemon daemon;
	struct gpc_session *session;
	struct gpc_image image;
	struct gp_image_info info;
	struct gp_kernel_info kernels[2];
	CUfunction kernel, other;
	atomic_int refusal;          /* of launches that are waited for */
	atomic_uint fewer;           /* answers than questions */
	atomic_uint multiprocessors; /* 0: the daemon does not say */
	atomic_bool share; /* the next answer comes behind a note: the share has changed */
	atomic_bool late;  /* the next answer comes behind a note: a launch was refused */
};

extern struct fixture fixture;

int set_up_launches(void **state);
int tear_down_launches(void **state);
#define LAUNCH_TEST(test) UNIT_TEST_WITH(test, set_up_launches, tear_down_launches)

/* How many of these the daemon has got, once it has got all that was posted before. */
size_t received(uint16_t call);
/* Of the first kernel. */
CUresult set(CUfunction_attribute attribute, int value);
CUresult allow_shared(int value);
/* A cooperative launch. */
CUresult launch_together(CUfunction kernel, unsigned int grid);

#endif /* LAUNCH_FIXTURE_H */
