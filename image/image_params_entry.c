/* SPDX-License-Identifier: Apache-2.0 */
#include "image/fatbin.h"
#include "image/image_params.h"

#include <errno.h>
#include <stdlib.h>

bool
gp_params_read_code(struct gp_params_reader *reader, unsigned int kind, const void *bytes,
		    size_t size)
{
	if (kind == GP_FATBIN_ELF)
		return gp_params_read_elf(reader, bytes, size);
	return kind == GP_FATBIN_PTX && gp_params_read_ptx(reader, bytes, size);
}

int
gp_params_read_entry(struct gp_params_reader *reader, const struct gp_fatbin_entry *entry,
		     bool *understood_p)
{
	void *bytes;
	size_t size;
	int r;

	*understood_p = false;
	if (entry->kind != GP_FATBIN_ELF && entry->kind != GP_FATBIN_PTX)
		return 0;
	if (!(entry->flags & (GP_FATBIN_LZ4 | GP_FATBIN_ZSTD))) {
		*understood_p = gp_params_read_code(reader, entry->kind, entry->payload,
						    entry->stored_size);
		return 0;
	}
	r = gp_fatbin_extract(entry, GP_IMAGE_SIZE_MAX, &bytes, &size);
	if (r)
		return r == -ENOMEM ? r : 0;
	*understood_p = gp_params_read_code(reader, entry->kind, bytes, size);
	free(bytes);
	return 0;
}
