/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the scan of a client's device code before it is loaded: the functions that it calls and
 * its variables, in ELF, PTX and their containers. */
#include "image/fatbin.h"
#include "server/worker/image_cache/image_scan.h"
#include "server/worker/image_cache/image_state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its own size, but as aligned as images must be. */
	void *copy = malloc(size ? size : 1);
	struct gpd_image_uses uses;
	struct gp_image *image;

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (gpd_variables_from_code(copy, size).size > GPD_VARIABLES_UNKNOWN)
		abort();
	if (!gp_image_open(copy, size, &image)) {
		(void)!gpd_image_scan(image, NULL, &uses);
		gp_image_destroy(image);
	}
	free(copy);
	return 0;
}
