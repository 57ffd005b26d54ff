/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches from graph nodes.
 *
 * Threads: any; the caller has called gs_enter().
 * Errors: CUresult.
 */
#ifndef GS_DRIVER_LAUNCH_H
#define GS_DRIVER_LAUNCH_H

#include "softgpu/driver/driver.h"

struct gs_graphs;
struct gs_green;

/* Validates a launch and returns the size of its packed parameters. */
CUresult gs_launch_check(const CUlaunchConfig *config, CUfunction function, void **params,
			 void **extra, struct gs_green *green, size_t *params_size_p);
/* Packs the parameters into the number of bytes that gs_launch_check() returned. */
CUresult gs_launch_params(CUfunction function, void **params, void **extra, uint8_t *packed);

/* Launches on the green context's multiprocessors (NULL: on all), regardless of the stream's
 * context. graphs: operations for kernels that launch or update graphs, or NULL; must exist until
 * the launch is complete. */
CUresult gs_launch_node(const CUlaunchConfig *config, CUfunction function, void **extra,
			struct gs_green *green, const struct gs_graphs *graphs);

#endif /* GS_DRIVER_LAUNCH_H */
