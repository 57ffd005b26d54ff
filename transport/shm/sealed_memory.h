/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sealed memory files (memfd) that two processes map. The size is sealed at creation, so neither
 * process can truncate the file and cause SIGBUS in the other.
 *
 * An end creates a file and passes its descriptor. The end that receives a descriptor calls
 * gp_sealed_check() before it maps the file, because the other end may be hostile.
 *
 * Ownership: descriptors and mappings are the caller's.
 * Threads: any.
 * Units: bytes.
 */
#ifndef GP_SEALED_MEMORY_H
#define GP_SEALED_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Creates a sealed file of `size` zero bytes. With size 0 it fails with -EINVAL if `now` is set,
 * and otherwise makes a file that gp_sealed_check() rejects. name: shown in /proc, at most 249
 * bytes. now: allocates all pages at once, which fails with -ENOSPC or -ENOMEM if memory is short.
 * Returns a descriptor (close-on-exec), which the caller closes, or a negative errno. */
GP_MUST_CHECK int gp_sealed_create(const char *name, size_t size, bool now);

/* Checks that the descriptor is a memory file with a sealed size above 0, and stores the size in
 * *size_p. Returns 0, or GP_E_INVALID with *size_p unchanged. */
GP_MUST_CHECK int gp_sealed_check(int fd, size_t *size_p);

/* Returns whether the file was created by gp_sealed_create() or memfd_create(2) with this name, of
 * at most 63 bytes. False if /proc is not readable. */
bool gp_sealed_has_name(int fd, const char *name);

/* Allocates the pages of a part of the file. Returns 0 or a negative errno. */
GP_MUST_CHECK int gp_sealed_alloc_pages(int fd, uint64_t offset, uint64_t size);
/* Frees the pages of a part of the file, which then reads as zeros. Failures are ignored. */
void gp_sealed_free_pages(int fd, uint64_t offset, uint64_t size);

#endif /* GP_SEALED_MEMORY_H */
