/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/code/image_scan.h"

#include "image/fatbin.h"
#include "server/worker/code/image_state.h"

#include <stdlib.h>
#include <string.h>

/* What device code calls for printf and for malloc, in PTX as in the symbols of an ELF. */
#define PRINT_SYMBOL "vprintf"
#define MALLOC_SYMBOL "malloc"
/* Of compressed code, after extraction. */
#define EXTRACT_MAX ((size_t)64 << 20)

static void
look(struct gpd_image_uses *uses, const void *bytes, size_t size)
{
	struct gpd_variables variables = gpd_variables_of(bytes, size);
	const char *text = bytes;

	uses->print = uses->print || memmem(bytes, size, PRINT_SYMBOL, strlen(PRINT_SYMBOL));
	/* As a whole name: programs have functions of their own with names like it. */
	uses->malloc = uses->malloc || gpd_find_word(text, text, text + size, MALLOC_SYMBOL);
	uses->state = uses->state || variables.state;
	/* Of a fatbin's entries the driver loads one. */
	if (variables.size > uses->variables)
		uses->variables = variables.size;
}

static void
look_at_entry(struct gpd_image_uses *uses, const struct gp_fatbin_entry *entry, size_t *budget)
{
	size_t size;
	void *bytes;

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD))) {
		look(uses, entry->payload, entry->stored_size);
		return;
	}
	if (entry->raw_size > *budget || gp_fatbin_extract(entry, EXTRACT_MAX, &bytes, &size)) {
		uses->state = true;
		return;
	}
	*budget -= entry->raw_size;
	look(uses, bytes, size);
	free(bytes);
}

static void
look_at_fatbin(struct gpd_image_uses *uses, struct gp_image_blob blob, size_t *budget)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;

	int r = gp_fatbin_walk(&walk, blob.data, blob.size);

	while (!r && !(r = gp_fatbin_next(&walk, &entry)))
		look_at_entry(uses, &entry, budget);
	if (r != GP_IMAGE_E_END)
		uses->state = true;
}

struct gpd_image_uses
gpd_image_scan(const struct gp_image *image)
{
	enum gp_image_kind kind = gp_image_type(image);
	bool fatbin = kind == GP_IMAGE_WRAPPER || kind == GP_IMAGE_FATBIN;
	struct gpd_image_uses all = { 0 };
	size_t budget = EXTRACT_MAX;

	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		struct gp_image_blob blob = gp_image_blob(image, i);
		struct gpd_image_uses uses = { 0 };

		if (fatbin)
			look_at_fatbin(&uses, blob, &budget);
		else
			look(&uses, blob.data, blob.size);
		all.print = all.print || uses.print;
		all.malloc = all.malloc || uses.malloc;
		all.state = all.state || uses.state;
		all.variables += uses.variables;
	}
	return all;
}
