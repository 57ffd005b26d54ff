/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed memory files (memfd) that two processes map. The size is sealed at creation, so neither
 * process can truncate the file and cause SIGBUS in the other.
 *
 * The daemon creates them; the client checks the seals before it maps the file.
 *
 * Ownership: descriptors and mappings are the caller's.
 * Threads: any.
 */
#ifndef GP_SEALED_MEMORY_H
#define GP_SEALED_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a descriptor of a sealed file of `size` zero bytes, close-on-exec, or a negative errno.
 * `now`: allocates all pages at once, or fails. */
GP_MUST_CHECK int gp_sealed_create(const char *name, size_t size, bool now);

/* Returns 0 and the size; GP_E_INVALID: not a memory file, or its size is not sealed. */
GP_MUST_CHECK int gp_sealed_check(int fd, size_t *size_p);

/* Whether the file was created with this name, of at most 63 bytes. */
bool gp_sealed_has_name(int fd, const char *name);

/* Allocate the pages of a part (0 or a negative errno), and free them; freed pages read as
 * zeros. */
GP_MUST_CHECK int gp_sealed_alloc_pages(int fd, uint64_t offset, uint64_t size);
void gp_sealed_free_pages(int fd, uint64_t offset, uint64_t size);

#endif /* GP_SEALED_MEMORY_H */
