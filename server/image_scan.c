/* SPDX-License-Identifier: Apache-2.0 */
#include "server/image_scan.h"

#include "protocol/fatbin.h"

#include <stdlib.h>
#include <string.h>

/* What device code calls for printf, in PTX as in the symbols of an ELF. */
#define PRINT_SYMBOL "vprintf"
/* Of compressed code, after extraction. */
#define EXTRACT_MAX ((size_t)64 << 20)

static bool
contains(const void *bytes, size_t size)
{
	return memmem(bytes, size, PRINT_SYMBOL, strlen(PRINT_SYMBOL)) != NULL;
}

static bool
entry_prints(const struct gp_fatbin_entry *entry, size_t *budget)
{
	size_t size;
	void *bytes;
	bool found;

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD)))
		return contains(entry->payload, entry->stored_size);
	if (entry->raw_size > *budget)
		return false;
	*budget -= entry->raw_size;
	if (gp_fatbin_extract(entry, EXTRACT_MAX, &bytes, &size))
		return false;
	found = contains(bytes, size);
	free(bytes);
	return found;
}

static bool
fatbin_prints(struct gp_image_blob blob, size_t *budget)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;

	if (gp_fatbin_walk(&walk, blob.data, blob.size))
		return false;
	while (!gp_fatbin_next(&walk, &entry)) {
		if (entry_prints(&entry, budget))
			return true;
	}
	return false;
}

bool
gpd_image_prints(const struct gp_image *image)
{
	enum gp_image_kind kind = gp_image_type(image);
	bool fatbin = kind == GP_IMAGE_WRAPPER || kind == GP_IMAGE_FATBIN;
	size_t budget = EXTRACT_MAX;

	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		struct gp_image_blob blob = gp_image_blob(image, i);

		if (fatbin ? fatbin_prints(blob, &budget) : contains(blob.data, blob.size))
			return true;
	}
	return false;
}
