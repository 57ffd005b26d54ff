/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <stdio.h>
#include <stdlib.h>

void *
gs_test_file(const char *name, size_t *size_p)
{
	char path[4096];
	FILE *file;
	char *bytes;
	size_t size;

	snprintf(path, sizeof(path), "%s/%s", getenv("GP_TEST_KERNELS"), name);
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, size, file), size);
	bytes[size] = '\0';
	fclose(file);
	if (size_p)
		*size_p = size;
	return bytes;
}
