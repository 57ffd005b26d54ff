/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader for the fatbins that nvcc builds from tests/unit/image/fatbin. Include it after
 * tests/test.h.
 *
 * Threads: any.
 */
#ifndef GP_TEST_FATBIN_FILE_H
#define GP_TEST_FATBIN_FILE_H

#include <stdio.h>
#include <stdlib.h>

/* Returns the contents of a file in the folder that the environment variable GP_TEST_FATBINS names,
 * followed by 64 zero bytes. The caller frees them. Errors fail the test. */
static inline char *
read_fatbin_file(const char *name)
{
	char path[4096], *bytes;
	FILE *file;
	long size;

	snprintf(path, sizeof(path), "%s/%s", getenv("GP_TEST_FATBINS"), name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	rewind(file);
	bytes = calloc(1, (size_t)size + 64);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
	fclose(file);
	return bytes;
}

#endif /* GP_TEST_FATBIN_FILE_H */
