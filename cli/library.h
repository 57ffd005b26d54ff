/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locates gpupool's client library, libcuda.so.1, and distinguishes it from other files.
 *
 * Threads: any; the functions keep no state.
 */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#define CLI_LIBRARY "libcuda.so.1"

/* Writes the absolute path of the folder with the library that belongs to this gpupool: installed,
 * in the same folder, or in the same build tree. Returns false with the searched folders in
 * error. */
bool cli_library_find(char *folder, size_t size, char *error, size_t error_size);

enum cli_library_kind {
	CLI_LIBRARY_NONE,  /* it cannot be read */
	CLI_LIBRARY_OURS,  /* gpupool's, of any version */
	CLI_LIBRARY_OTHER, /* NVIDIA's driver, or a stub of it */
};
/* Classifies the file at this path. */
enum cli_library_kind cli_library_kind(const char *path);

#endif /* CLI_LIBRARY_H */
