/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image_cache/image_scan.h"

#include "image/fatbin.h"
#include "server/worker/image_cache/image_state.h"

#include <errno.h>
#include <string.h>

/* Symbols that device code calls for printf, assert and malloc, the same in PTX and ELF. */
#define PRINT_SYMBOL "vprintf"
#define ASSERT_SYMBOL "__assertfail"
#define MALLOC_SYMBOL "malloc"
/* Total of compressed code per image, after extraction. */
#define EXTRACT_MAX ((size_t)64 << 20)

static void
code_scan(struct gpd_image_uses *uses, const void *bytes, size_t size)
{
	struct gpd_variables variables = gpd_variables_from_code(bytes, size);
	const char *text = bytes;

	uses->print = uses->print || memmem(bytes, size, PRINT_SYMBOL, strlen(PRINT_SYMBOL));
	uses->asserts = uses->asserts || memmem(bytes, size, ASSERT_SYMBOL, strlen(ASSERT_SYMBOL));
	/* Matches the whole name only: programs have functions with similar names. */
	uses->malloc = uses->malloc || gpd_text_find_word(text, text, text + size, MALLOC_SYMBOL);
	uses->state = uses->state || variables.state;
	/* The driver loads only one of a fatbin's entries, so the largest counts. */
	if (variables.size > uses->variables)
		uses->variables = variables.size;
}

static bool
is_limiter_error(int r)
{
	return r == -EDQUOT || r == -ECANCELED;
}

static int
entry_scan(struct gpd_image_uses *uses, const struct gp_fatbin_entry *entry,
	   struct gp_unpack_limiter *limiter, size_t *budget)
{
	size_t size;
	void *bytes;
	int r = -EFBIG;

	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD))) {
		code_scan(uses, entry->payload, entry->stored_size);
		return 0;
	}
	if (entry->raw_size <= *budget)
		r = gp_fatbin_extract_limited(entry, EXTRACT_MAX, limiter, &bytes, &size);
	if (r) {
		uses->state = uses->asserts = true;
		return is_limiter_error(r) ? r : 0;
	}
	*budget -= entry->raw_size;
	code_scan(uses, bytes, size);
	gp_fatbin_release(limiter, bytes, size);
	return 0;
}

static int
fatbin_scan(struct gpd_image_uses *uses, struct gp_image_blob blob,
	    struct gp_unpack_limiter *limiter, size_t *budget)
{
	struct gp_fatbin_walk walk;
	struct gp_fatbin_entry entry;

	int r = gp_fatbin_walk(&walk, blob.data, blob.size);

	while (!r && !(r = gp_fatbin_next(&walk, &entry)))
		r = entry_scan(uses, &entry, limiter, budget);
	if (r != GP_IMAGE_E_END)
		uses->state = uses->asserts = true;
	return is_limiter_error(r) ? r : 0;
}

int
gpd_image_scan(const struct gp_image *image, struct gp_unpack_limiter *limiter,
	       struct gpd_image_uses *uses_p)
{
	enum gp_image_kind kind = gp_image_type(image);
	bool fatbin = kind == GP_IMAGE_WRAPPER || kind == GP_IMAGE_FATBIN;
	struct gpd_image_uses all = { 0 };
	size_t budget = EXTRACT_MAX;
	int r = 0;

	for (unsigned int i = 0; !r && i < gp_image_count(image); i++) {
		struct gp_image_blob blob = gp_image_blob(image, i);
		struct gpd_image_uses uses = { 0 };

		if (fatbin)
			r = fatbin_scan(&uses, blob, limiter, &budget);
		else
			code_scan(&uses, blob.data, blob.size);
		all.print = all.print || uses.print;
		all.malloc = all.malloc || uses.malloc;
		all.asserts = all.asserts || uses.asserts;
		all.state = all.state || uses.state;
		all.variables += uses.variables;
	}
	*uses_p = all;
	return r;
}
