/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locates gpupool's client library, libcuda.so.1, and distinguishes it from other files.
 *
 * Ownership: texts are written to buffers of the caller.
 * Threads: any; the functions have no state.
 */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_LIBRARY "libcuda.so.1"

/* Writes the absolute path of the folder with the library that belongs to this gpupool: installed,
 * in the same folder, or in the same build tree. Returns true; or false with a text in `error` that
 * lists the searched folders, and `folder` is then undefined. */
bool cli_library_find(char *folder, size_t size, char *error, size_t error_size);

enum cli_library_kind {
	CLI_LIBRARY_NONE,  /* the file cannot be read, or is not a regular file */
	CLI_LIBRARY_OURS,  /* gpupool's client library, of any version */
	CLI_LIBRARY_OTHER, /* NVIDIA's driver, or a stub of it */
};
/* Classifies the file at this path by its content. */
enum cli_library_kind cli_library_kind(const char *path);

#endif /* CLI_LIBRARY_H */
