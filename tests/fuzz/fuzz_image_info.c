/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of a daemon's list of kernels: a list that can be decoded is encoded, and decodes to the
 * same again. */
#include "protocol/image_info.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
compare(const struct gp_kernel_info *a, const struct gp_kernel_info *b)
{
	if (strcmp(a->name, b->name) != 0 || a->attributes_known != b->attributes_known ||
	    memcmp(a->attributes, b->attributes, sizeof(a->attributes)) != 0 ||
	    a->param_count != b->param_count)
		abort();
	for (uint32_t i = 0; i < a->param_count; i++) {
		if (a->params[i].offset != b->params[i].offset ||
		    a->params[i].size != b->params[i].size)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_image_info *info, *again;
	struct gp_bytes encoded;
	void *copy = malloc(size + 1);
	void *bytes;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (gp_image_info_decode(&info, (struct gp_bytes){ copy, size }) == 0) {
		if (gp_image_info_encode(info, &bytes, &encoded.size))
			abort();
		encoded.data = bytes;
		if (gp_image_info_decode(&again, encoded) ||
		    again->kernel_count != info->kernel_count)
			abort();
		for (uint32_t i = 0; i < info->kernel_count; i++)
			compare(&info->kernels[i], &again->kernels[i]);
		free(bytes);
		gp_image_info_destroy(again);
		gp_image_info_destroy(info);
	}
	free(copy);
	return 0;
}
