/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which program this is: a daemon tells a program that it has served before what it remembers of
 * it.  By one thread, in cuInit.
 */
#ifndef GPC_PROGRAM_H
#define GPC_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#define GPC_PROGRAM_KEY_SIZE 32

/* A hash of the executable's path, size and time, and of those of the script that it runs.  false:
 * nobody can tell. */
bool gpc_program_key(uint8_t key[GPC_PROGRAM_KEY_SIZE]);

#endif /* GPC_PROGRAM_H */
