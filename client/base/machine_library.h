/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library of the machine that has the name of one of ours: when no daemon is named, calls go
 * there.  While ours is being loaded, by one thread.
 */
#ifndef GPC_MACHINE_LIBRARY_H
#define GPC_MACHINE_LIBRARY_H

#include <stdbool.h>

/* The first that is found, not ours (which something of ours lies in) and, as is_it says, no copy
 * of ours, opened; NULL.  What is_it refuses stays loaded. */
void *gpc_machine_library_open(const char *name, const void *ours, bool (*is_it)(void *library));

#endif /* GPC_MACHINE_LIBRARY_H */
