/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds and opens the machine's own library (for example NVIDIA's libcuda.so.1) that has the same
 * file name as one of gpupool's. gpupool's library forwards all calls to it if REMOTE_GPU is not
 * set.
 *
 * Ownership: an opened library is never closed, as it may have started threads.
 * Threads: one thread, while gpupool's library is being loaded.
 */
#ifndef GPC_MACHINE_LIBRARY_H
#define GPC_MACHINE_LIBRARY_H

#include <stdbool.h>

/* Searches for libraries of this file name, opens them one after the other, and returns the first
 * that is_it() accepts. Searches the absolute paths of LD_LIBRARY_PATH, the cache of the dynamic
 * loader and the usual folders, in this order. ours: an address in the calling library, whose file
 * is never opened again. is_it(): receives the handle of dlopen(), and returns whether the library
 * is the wanted one and not another copy of gpupool's. Returns the handle of dlopen(), which must
 * not be closed, or NULL if there is none. Rejected libraries stay loaded. A library that cannot be
 * loaded is reported as GPC_LOG_ERROR (log.h). */
void *gpc_machine_library_open(const char *name, const void *ours, bool (*is_it)(void *library));

#endif /* GPC_MACHINE_LIBRARY_H */
