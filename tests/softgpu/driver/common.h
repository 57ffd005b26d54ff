/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for tests of the software device's driver API: a current context, kernels, device memory.
 * Errors fail the test. */
#ifndef GS_TEST_COMMON_H
#define GS_TEST_COMMON_H

#include "softgpu/driver/soft_cuda.h"
#include "tests/test.h"

#define GS_MIB ((size_t)1 << 20)
#define GS_CHUNK (2 * GS_MIB)

#define check(call) assert_int_equal((int)(call), 0)
#define check_is(call, code) assert_int_equal((int)(call), (int)(code))

/* Group setup and teardown: the primary context is retained and current. */
int gs_test_setup(void **state);
int gs_test_teardown(void **state);

/* Returns a file of the build's folder of kernels, followed by a NUL byte. The caller frees it. */
void *gs_test_file(const char *name, size_t *size_p);

/* The library kernels.fatbin and its kernels. It is loaded once per process. */
CUlibrary gs_test_library(void);
CUfunction gs_test_kernel(const char *name);

/* Ends the process after `seconds`, so that a test cannot hang. */
void gs_test_deadline(unsigned int seconds);

CUstream gs_test_stream(void);

/* Words of pinned memory that streams wait for or write.  A gate is a word that is not 0 when open.
 * gs_test_make_words() allocates them and returns 0 on success; each WORDS_TEST() starts with
 * zeros. */
extern unsigned int *gs_test_words;
int gs_test_make_words(void);
int gs_test_clear_words(void **state);
CUdeviceptr gs_test_address(unsigned int i);
unsigned int gs_test_word(unsigned int i);
void gs_test_open_gate(unsigned int i);
void gs_test_wait_at_gate(CUstream stream, unsigned int i);
#define WORDS_TEST(test) UNIT_TEST_WITH(test, gs_test_clear_words, NULL)

#endif /* GS_TEST_COMMON_H */
