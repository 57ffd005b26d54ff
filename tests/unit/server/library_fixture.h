/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of libraries (images loaded into the driver, which sessions with the same image
 * share): two fake sessions of one worker, and a driver that counts loads and stores the attributes
 * of kernels.
 *
 * Each test starts with nothing loaded and must leave nothing loaded, which the teardown checks.
 * Threads: the test's threads; the driver's counters are atomic.
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

/* Image ID that the sessions use. */
#define IMAGE 8
/* Number of kernels of each library: zebra, then ant. */
#define KERNELS 2
/* Initial maximum of dynamic shared memory, in bytes. */
#define DYNAMIC 49152
/* Texts of images: three different ones with a kernel (PLAIN, OTHER, THIRD), and one with a
 * variable, which sessions cannot share. */
#define PLAIN ".version 8.0\n.visible .entry ant()\n"
#define OTHER ".version 8.1\n.visible .entry ant()\n"
#define THIRD ".version 8.2\n.visible .entry ant()\n"
#define COUNTER ".version 8.0\n.global .u32 counter;\n"

/* The driver's state of a kernel: its maximum dynamic shared memory, preferred carveout and cache
 * configuration. CUkernel and CUfunction point to it. */
struct kernel {
	const char *name;
	int dynamic, carveout, config;
};

/* The driver's state of a library. CUlibrary points to it. */
struct library {
	struct kernel kernels[KERNELS];
};

/* The two sessions. */
extern struct fake_session ours, theirs;
/* If not NULL, each load waits until the test posts this semaphore. */
extern sem_t *gate;
/* Numbers of driver calls that load, unload, and get a function. */
extern _Atomic int loads, unloads, functions;
/* Result of loads. */
extern _Atomic CUresult load_result;

/* CMocka setup and teardown of a test. library_setup() returns 0 or -1. library_teardown()
 * returns the number of libraries left, so that a leak fails the test. */
int library_setup(void **state);
int library_teardown(void **state);
/* Defines a test with this fixture. */
#define LIBRARY_TEST(test) UNIT_TEST_WITH(test, library_setup, library_teardown)

/* The fake's cuKernelGetParamInfo(), for kernels without parameters: always returns
 * CUDA_ERROR_INVALID_VALUE. */
CUresult library_get_param(CUkernel kernel, size_t index, size_t *offset, size_t *size);

/* Loads an image with a client's image ID and options. Returns the result of the call. */
CUresult try_load(struct fake_session *fake, uint32_t name, const char *text,
		  struct gp_bytes options);
/* Loads an image as IMAGE without options, or fails the test. */
void load(struct fake_session *fake, const char *text);
/* Returns the driver's state of the kernel ant, the first of IMAGE in the order of names. It is
 * valid until the library is unloaded. */
struct kernel *ant_of(struct fake_session *fake);
/* Launches this kernel with dynamic shared memory in bytes. Returns the result of the call. */
CUresult launch(struct fake_session *fake, uint32_t dynamic);

#endif /* LIBRARY_FIXTURE_H */
