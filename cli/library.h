/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client library, gpupool's libcuda.so.1: where it is, and whether a file is it.  No state.
 */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_LIBRARY "libcuda.so.1"

/* The folder of the one that belongs to this gpupool: as installed, beside it, or in the same
 * build; no relative path.  false: there is none; error says where it was looked for. */
bool cli_library_find(char *folder, size_t size, char *error, size_t error_size);

enum cli_library_kind {
	CLI_LIBRARY_NONE,  /* it cannot be read */
	CLI_LIBRARY_OURS,  /* of gpupool, this one or another version */
	CLI_LIBRARY_OTHER, /* NVIDIA's driver, or a stub of it */
};
enum cli_library_kind cli_library_kind(const char *path);

#endif /* CLI_LIBRARY_H */
