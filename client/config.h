/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of the process, as far as it concerns this library (gpupool.7).  Read anew by
 * each function, from any thread, except where it says otherwise.
 */
#ifndef GPC_CONFIG_H
#define GPC_CONFIG_H

#include "protocol/status.h"
#include "transport/url.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether REMOTE_GPU is set and not empty. */
bool gpc_config_remote(void);

/* REMOTE_GPU; GP_E_INVALID: error says what is wrong with it. */
GP_MUST_CHECK int gpc_config_daemon(struct gp_url *url, char *error, size_t error_size);

/* CUDA_MODULE_LOADING: lazy unless it says EAGER. */
CUmoduleLoadingMode gpc_config_module_loading(void);

/* CUDA_LAUNCH_BLOCKING: as it was when first asked. */
bool gpc_config_launch_blocking(void);

/* What CUDA_VISIBLE_DEVICES (NULL: unset) makes of `count` devices with these identities: writes
 * the indices of those that the application shall see, in its order, and returns their number. */
int gpc_config_visible_devices(const char *list, const CUuuid *uuids, int count, int *indices);

/* The wishes of an MPS user: 1 to 100 or 0; 0 or 1; bytes of a device or 0. */
unsigned int gpc_config_thread_percentage(void);
int gpc_config_priority(void);
size_t gpc_config_memory_limit(int device);

/* GPUPOOL_STALL_MS: how long a daemon may pause inside a message; 0: for ever. */
unsigned int gpc_config_stall_ms(void);

#endif /* GPC_CONFIG_H */
