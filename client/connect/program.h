/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity of the running program, by which a daemon recognizes a program that it served before and
 * preloads its images (device code).
 *
 * Threads: any thread may call; there is no state. Called while a session is opened.
 */
#ifndef GPC_PROGRAM_H
#define GPC_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* Size of a program's key in bytes. */
#define GPC_PROGRAM_KEY_SIZE 32

/* Computes a SHA-256 hash of path, size and modification time of the executable and, if the
 * program's first argument is the path of a file, of that file (for an interpreter, the script).
 * The working directory is that of the call. Returns true, or false with undefined contents of key
 * if the executable cannot be determined. */
bool gpc_program_key(uint8_t key[GPC_PROGRAM_KEY_SIZE]);

#endif /* GPC_PROGRAM_H */
