/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for tests of the software device's driver API: a current context, kernels, device memory.
 *
 * Threads: the test's thread, except where a comment names another.
 * Errors: failures fail the test.
 */
#ifndef GS_TEST_COMMON_H
#define GS_TEST_COMMON_H

#include "softgpu/driver/soft_cuda.h"
#include "tests/test.h"

/* A MiB, and the granularity of physical memory, in bytes. */
#define GS_MIB ((size_t)1 << 20)
#define GS_CHUNK (2 * GS_MIB)

/* Assert that a call returns CUDA_SUCCESS or (check_is) this error. */
#define check(call) assert_int_equal((int)(call), 0)
#define check_is(call, code) assert_int_equal((int)(call), (int)(code))

/* CMocka group setup and teardown: the primary context of device 0 is retained and current. Return
 * 0 or -1. */
int gs_test_setup(void **state);
int gs_test_teardown(void **state);

/* Returns the contents of a file of the build's folder of kernels, followed by a NUL byte, and
 * stores the size without it in *size_p if size_p is not NULL. The caller frees the contents. */
void *gs_test_file(const char *name, size_t *size_p);

/* Returns the library kernels.fatbin, which is loaded once per process and unloaded by the group
 * teardown. */
CUlibrary gs_test_library(void);
/* Returns a kernel of this library. */
CUfunction gs_test_kernel(const char *name);

/* Ends the process by SIGALRM after `seconds`, so that a test cannot hang. Replaces an earlier
 * deadline. */
void gs_test_deadline(unsigned int seconds);

/* Returns a new non-blocking stream, which the caller destroys. */
CUstream gs_test_stream(void);

/* Words (32 bits each) of pinned memory that streams wait for or write. A gate is such a word; it
 * is open if it is not 0. The memory is never freed. */
extern unsigned int *gs_test_words;
/* CMocka group setup helper: allocates the words. Returns 0 or a CUresult. */
int gs_test_make_words(void);
/* CMocka setup: sets all words to 0. Returns 0. */
int gs_test_clear_words(void **state);
/* Returns the device address of word i. */
CUdeviceptr gs_test_address(unsigned int i);
/* Returns the value of word i. Any thread may call it. */
unsigned int gs_test_word(unsigned int i);
/* Sets word i to 1. Any thread may call it. */
void gs_test_open_gate(unsigned int i);
/* Makes the stream wait until word i is 1. The calling thread does not wait. */
void gs_test_wait_at_gate(CUstream stream, unsigned int i);
/* Defines a test that starts with all words 0. */
#define WORDS_TEST(test) UNIT_TEST_WITH(test, gs_test_clear_words, NULL)

#endif /* GS_TEST_COMMON_H */
