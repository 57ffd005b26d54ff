/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of libraries (loaded images): two fake sessions of one worker, and a driver
 * that counts loads and stores the attributes of kernels.
 *
 * Each test starts with nothing loaded and must leave nothing loaded, which the teardown checks.
 */
#ifndef LIBRARY_FIXTURE_H
#define LIBRARY_FIXTURE_H

#include "gpd_calls.h"
#include "protocol/image_info.h"
#include "server/worker/module/image.h"
#include "server/worker/module/library.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <semaphore.h>

#define IMAGE 8
#define KERNELS 2
#define DYNAMIC 49152
#define PLAIN ".version 8.0\n.visible .entry ant()\n"
#define OTHER ".version 8.1\n.visible .entry ant()\n"
#define THIRD ".version 8.2\n.visible .entry ant()\n"
#define COUNTER ".version 8.0\n.global .u32 counter;\n"

/* The driver's state of a kernel. CUkernel and CUfunction point to it. */
struct kernel {
	const char *name;
	int dynamic, carveout, config;
};

struct library {
	struct kernel kernels[KERNELS];
};

extern struct fake_session ours, theirs;
/* If set, each load waits for this semaphore. */
extern sem_t *gate;
extern _Atomic int loads, unloads, functions;
extern _Atomic CUresult load_result;

int library_setup(void **state);
int library_teardown(void **state);
#define LIBRARY_TEST(test) UNIT_TEST_WITH(test, library_setup, library_teardown)

/* A cuKernelGetParamInfo() for kernels without parameters. */
CUresult library_get_param(CUkernel kernel, size_t index, size_t *offset, size_t *size);

CUresult try_load(struct fake_session *fake, uint32_t name, const char *text,
		  struct gp_bytes options);
/* Loads an image as IMAGE, or fails the test. */
void load(struct fake_session *fake, const char *text);
/* Returns the first kernel of IMAGE, and launches that kernel. */
struct kernel *ant_of(struct fake_session *fake);
CUresult launch(struct fake_session *fake, uint32_t dynamic);

#endif /* LIBRARY_FIXTURE_H */
