/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and opens the machine's own library (for example NVIDIA's libcuda.so.1) that has the same
 * name as one of gpupool's. All calls are forwarded to it if REMOTE_GPU is not set.
 *
 * Ownership: an opened library is never closed.
 * Threads: one thread, while gpupool's library is being loaded.
 */
#ifndef GPC_MACHINE_LIBRARY_H
#define GPC_MACHINE_LIBRARY_H

#include <stdbool.h>

/* Opens the first library of this name that does not contain the address `ours` and that is_it()
 * accepts (it rejects copies of gpupool's library). Returns the handle of dlopen(), or NULL. A
 * rejected library stays loaded. */
void *gpc_machine_library_open(const char *name, const void *ours, bool (*is_it)(void *library));

#endif /* GPC_MACHINE_LIBRARY_H */
