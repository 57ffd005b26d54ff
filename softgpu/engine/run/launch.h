/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads that run the blocks of launches; started once per process and never stopped. */
#ifndef GS_LAUNCH_H
#define GS_LAUNCH_H

#include "softgpu/engine/engine.h"

/* Starts `count` - 1 threads, because the thread of a launch is the first worker. Called once,
 * under the lock of gs_engine_init(). Starts fewer if threads cannot be created. Always returns
 * GS_OK. */
int gs_workers_start(int count);

#endif
