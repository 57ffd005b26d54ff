/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of the process, as far as it concerns this library (gpupool.7).  Read anew by
 * each function, from any thread, except where it says otherwise.
 */
#ifndef GPC_CONFIG_H
#define GPC_CONFIG_H

#include "base/status.h"
#include "protocol/pack.h"
#include "transport/url.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether REMOTE_GPU, or rCUDA's RCUDA_DEVICE_COUNT, is set and not empty. */
bool gpc_config_has_remote(void);

/* The list of REMOTE_GPU, or RCUDA_DEVICE_0 and so on: up to max of them, each a daemon or a device
 * of one.  GP_E_INVALID: error says what is wrong with it. */
GP_MUST_CHECK int gpc_config_daemons(struct gp_url *urls, int max, int *count_p, char *error,
				     size_t error_size);

/* Whether one of GPUPOOL_TOKEN_FILE and GPUPOOL_TLS_... is set: a host without a scheme is then one
 * of tls://, as where pools.conf has it so (gpc_pools_config_want_tls()). */
bool gpc_config_has_credentials(void);

/* The name of a variable that the environment has and that is probably meant to be REMOTE_GPU,
 * which it does not have; false: there is none.  Before there are other threads. */
bool gpc_config_find_misspelled(char *name, size_t size);

/* How long a session is waited for that the daemon refuses because it is full: GPUPOOL_WAIT as a
 * number of seconds, or with s, m or h behind it; 0: not at all.  GP_E_INVALID: error says what is
 * wrong with it. */
GP_MUST_CHECK int gpc_config_get_wait(unsigned int *seconds_p, char *error, size_t error_size);
/* Such a time in any text; false: it is none. */
bool gpc_config_parse_wait(const char *text, unsigned int *seconds_p);

/* CUDA_MODULE_LOADING: lazy unless it says EAGER. */
CUmoduleLoadingMode gpc_config_module_loading(void);

/* CUDA_LAUNCH_BLOCKING: as it was when first asked. */
bool gpc_config_launch_blocking(void);

/* What CUDA_VISIBLE_DEVICES (NULL: unset) makes of `count` devices with these identities: writes
 * the indices of those that the application shall see, in its order, and returns their number. */
int gpc_config_visible_devices(const char *list, const CUuuid *uuids, int count, int *indices);

/* What the environment asks of the daemon for this session. */
enum gpc_isolation {
	GPC_ISOLATION_ANY,
	GPC_ISOLATION_SHARED,
	GPC_ISOLATION_PROCESS
};
#define GPC_SESSION_OPTIONS_DEVICES 32
struct gpc_session_options {
	unsigned int thread_percentage; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, rounded up; 0: none */
	int priority;                   /* CUDA_MPS_CLIENT_PRIORITY: 0 normal, 1 below */
	uint64_t
		memory[GPC_SESSION_OPTIONS_DEVICES]; /* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; 0: none */
	int memory_count;
	enum gpc_isolation isolation;  /* GPUPOOL_ISOLATION */
	const char *tenant;            /* GPUPOOL_TENANT, or NULL */
	enum gp_pack_mode compression; /* GPUPOOL_COMPRESSION */
	unsigned int lanes;            /* GPUPOOL_LANES, 1 to 16; 0: as suits machine and link */
};

/* GP_E_INVALID: error says which variable makes no sense, and why. */
GP_MUST_CHECK int gpc_config_session_options(struct gpc_session_options *options, char *error,
					     size_t error_size);

/* GPUPOOL_TIMEOUT: for how long the daemon's machine may acknowledge nothing; 0: without limit.
 * gpc_config_session_options() reports an invalid one. */
unsigned int gpc_config_timeout_ms(void);

/* Says on standard error which word of GPUPOOL_LOG is none: what is said of a pool is no reason not
 * to use it. */
void gpc_config_check_log(void);

/* Whether lanes may go through shared memory where the daemon offers it: GPUPOOL_SHM, not 0. */
bool gpc_config_is_shm_enabled(void);

#endif /* GPC_CONFIG_H */
