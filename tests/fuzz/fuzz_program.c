/* SPDX-License-Identifier: Apache-2.0 */
/* A program that gpupool run is to start: reads of its file stay within it. */
#include "cli/elf_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_text(const char *text, const uint8_t *bytes, size_t size)
{
	const char *begin = (const char *)bytes;

	if (text && (text < begin || text >= begin + size ||
		     !memchr(text, 0, (size_t)(begin + size - text))))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Without readable memory after it. */
	uint8_t *bytes = malloc(size ? size : 1);
	struct cli_elf elf;

	if (!bytes)
		return 0;
	memcpy(bytes, data, size);
	cli_elf_read(bytes, size, &elf);
	check_text(elf.rpath, bytes, size);
	check_text(elf.runpath, bytes, size);
	check_text(elf.libcuda, bytes, size);
	if (!elf.elf && (elf.dynamic || elf.rpath || elf.other_machine))
		abort();
	free(bytes);
	return 0;
}
