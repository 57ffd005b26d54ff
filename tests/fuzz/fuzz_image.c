/* SPDX-License-Identifier: Apache-2.0 */
/* Device code as it comes from a client: opened, walked, extracted, checked, filtered. */
#include "image/elf_check.h"
#include "image/fatbin.h"

#include <stdlib.h>
#include <string.h>

#define EXTRACT_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
walk_blob(struct gp_image_blob blob)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;

	if (gp_fatbin_walk(&walk, blob.data, blob.size))
		return;
	while (!gp_fatbin_next(&walk, &entry)) {
		void *bytes;
		size_t length;

		if (gp_fatbin_extract(&entry, EXTRACT_MAX, &bytes, &length))
			continue;
		(void)!gp_elf_check(bytes, length);
		free(bytes);
	}
}

static void
use(const struct gp_image *image)
{
	static const struct gp_image_target targets[] = { { .major = 9 }, { .software = true } };

	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		char *ptx;
		size_t length;

		walk_blob(gp_image_blob(image, i));
		(void)!gp_elf_check(gp_image_blob(image, i).data, gp_image_blob(image, i).size);
		if (!gp_image_software_ptx(image, i, EXTRACT_MAX, &ptx, &length))
			free(ptx);
	}
	for (unsigned int i = 0; i < 2; i++) {
		void *bytes;
		size_t length;

		if (!gp_image_flatten(image, &targets[i], &bytes, &length))
			free(bytes);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gp_image *image;
	void *copy = aligned_alloc(GP_IMAGE_ALIGN, (size + GP_IMAGE_ALIGN) & ~(size_t)15);

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (!gp_image_open(copy, size, &image)) {
		use(image);
		gp_image_destroy(image);
	}
	free(copy);
	return 0;
}
