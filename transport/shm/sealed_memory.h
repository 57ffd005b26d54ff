/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that two processes map and neither can take away from the other: its size is sealed when
 * it is made, so that no access to it ends a process.
 *
 * The daemon makes it; the client makes sure that it is sealed before it touches it.  Plain
 * descriptors and mappings, owned by the caller.  Any thread.
 */
#ifndef GP_SEALED_MEMORY_H
#define GP_SEALED_MEMORY_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A descriptor of `size` bytes of zeros, closed on exec, or -errno.  `now`: the system gives all of
 * it at once, or says that it cannot. */
GP_MUST_CHECK int gp_sealed_create(const char *name, size_t size, bool now);

/* 0 and its size; GP_E_INVALID: its size could change, or it is no such memory. */
GP_MUST_CHECK int gp_sealed_check(int fd, size_t *size_p);

/* Whether the descriptor was created under this name, of at most 63 bytes. */
bool gp_sealed_has_name(int fd, const char *name);

/* Allocates the pages of a part at once (or -errno), and frees them: they read as zeros then. */
GP_MUST_CHECK int gp_sealed_alloc_pages(int fd, uint64_t offset, uint64_t size);
void gp_sealed_free_pages(int fd, uint64_t offset, uint64_t size);

#endif /* GP_SEALED_MEMORY_H */
