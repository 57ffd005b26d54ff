/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading what is likely to be needed while nobody is there to be held up.
 *
 * What sessions share (library.h) is noted down beside the image in the cache on disk: the devices
 * and the kernels that were used.  A worker without sessions has the driver load the images that
 * were used last, with these kernels; it stops when a session comes, and goes on when there is none
 * again.  So a program that ran before starts beside others' kernels also in a later worker.
 */
#ifndef GPD_PRELOAD_H
#define GPD_PRELOAD_H

#include <stdbool.h>

struct gpd_library;

/* Janitor.  false: nothing could be noted. */
bool gpd_preload_note(struct gpd_library *library);

/* The worker has come to have no session; any thread.  Also the first time. */
void gpd_preload_idle(void);

/* For tests: begins from the beginning. */
void gpd_preload_restart(void);

#endif /* GPD_PRELOAD_H */
