/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads that run blocks; started once and never stopped. */
#ifndef GS_LAUNCH_H
#define GS_LAUNCH_H

#include "softgpu/engine/engine.h"

int gs_workers_start(int count);

#endif
