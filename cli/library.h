/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds gpupool's client library, libcuda.so.1, and distinguishes it from other files of this name.
 *
 * Ownership: texts are written to buffers of the caller.
 * Threads: any; the functions have no state.
 */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_LIBRARY "libcuda.so.1"

/* Writes the absolute path of the folder with the library that belongs to this gpupool: of the same
 * installation, in the same folder, or in the same build tree. Returns true; or false with a text
 * in `error` that lists the searched folders, and `folder` is then "". `error` is overwritten in
 * both cases. */
bool cli_library_find(char *folder, size_t size, char *error, size_t error_size);

/* Kind of a file. */
enum cli_library_kind {
	CLI_LIBRARY_NONE,  /* the file cannot be read, is empty, or is not a regular file */
	CLI_LIBRARY_OURS,  /* gpupool's client library, of any version */
	CLI_LIBRARY_OTHER, /* any other file, for example NVIDIA's driver */
};
/* Classifies the file at this path by its content. */
enum cli_library_kind cli_library_kind(const char *path);

#endif /* CLI_LIBRARY_H */
