/* SPDX-License-Identifier: Apache-2.0 */
/* What kernel nodes of graphs need of launches. Any thread; the caller has entered. */
#ifndef GS_DRIVER_LAUNCH_H
#define GS_DRIVER_LAUNCH_H

#include "softgpu/driver/driver.h"

struct gs_graphs;
struct gs_green;

/* Whether a launch would be refused, and the bytes of its packed parameters. */
CUresult gs_launch_check(const CUlaunchConfig *config, CUfunction function, void **params,
			 void **extra, struct gs_green *green, size_t *params_size_p);
/* Packs them, as many bytes as gs_launch_check() says. */
CUresult gs_launch_params(CUfunction function, void **params, void **extra, uint8_t *packed);

/* A launch that runs on the green context's multiprocessors, NULL: on all, whatever its stream's.
 * graphs: what the kernel may launch; or NULL. It stays until the launch has ended. */
CUresult gs_launch_node(const CUlaunchConfig *config, CUfunction function, void **extra,
			struct gs_green *green, const struct gs_graphs *graphs);

#endif /* GS_DRIVER_LAUNCH_H */
