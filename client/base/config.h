/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of the client library from the environment of the process (gpupool.7).
 *
 * Ownership: returned strings are those of the environment.
 * Threads: any thread may call, except where noted. Each function reads the environment anew,
 * except where noted.
 * Errors: GP_E_INVALID; the text in `error` names the variable and the reason.
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

/* Returns whether REMOTE_GPU, or rCUDA's RCUDA_DEVICE_COUNT, is set and not empty. */
bool gpc_config_has_remote(void);

/* Parses REMOTE_GPU, or RCUDA_DEVICE_0, RCUDA_DEVICE_1 and so on: at most max addresses, each of a
 * daemon or of one of its devices. */
GP_MUST_CHECK int gpc_config_daemons(struct gp_url *urls, int max, int *count_p, char *error,
				     size_t error_size);

/* Returns whether GPUPOOL_TOKEN_FILE or one of GPUPOOL_TLS_... is set. If so, a host without a
 * scheme means tls://, as it does if pools.conf has it with tls://
 * (gpc_pools_config_want_tls()). */
bool gpc_config_has_credentials(void);

/* Finds a variable in the environment whose name is probably a misspelling of REMOTE_GPU. Returns
 * false if there is none. Threads: only while the process has one thread. */
bool gpc_config_find_misspelled(char *name, size_t size);

/* Parses GPUPOOL_WAIT, the maximum time to wait for a session slot while the daemon is full: a
 * number of seconds, or a number with the suffix s, m or h. 0: do not wait. */
GP_MUST_CHECK int gpc_config_get_wait(unsigned int *seconds_p, char *error, size_t error_size);
/* Parses such a time. Returns false if it is invalid. */
bool gpc_config_parse_wait(const char *text, unsigned int *seconds_p);

/* Returns the mode that CUDA_MODULE_LOADING selects: lazy, unless it is EAGER. */
CUmoduleLoadingMode gpc_config_module_loading(void);

/* Returns whether CUDA_LAUNCH_BLOCKING was set when this function was first called. */
bool gpc_config_launch_blocking(void);

/* Applies CUDA_VISIBLE_DEVICES (list; NULL: not set) to `count` devices with these UUIDs. Writes
 * the indices of the visible devices in the order of the list, and returns their number. */
int gpc_config_visible_devices(const char *list, const CUuuid *uuids, int count, int *indices);

/* Options of the session that the environment requests from the daemon. */
enum gpc_isolation {
	GPC_ISOLATION_ANY,
	GPC_ISOLATION_SHARED,
	GPC_ISOLATION_PROCESS
};
#define GPC_SESSION_OPTIONS_DEVICES 32
struct gpc_session_options {
	unsigned int
		thread_percentage; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, rounded up; 0: not set */
	int priority;              /* CUDA_MPS_CLIENT_PRIORITY: 0 normal, 1 below normal */
	uint64_t memory[GPC_SESSION_OPTIONS_DEVICES]; /* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT in bytes;
							 0: not set */
	int memory_count;
	enum gpc_isolation isolation;  /* GPUPOOL_ISOLATION */
	const char *tenant;            /* GPUPOOL_TENANT, or NULL */
	enum gp_pack_mode compression; /* GPUPOOL_COMPRESSION */
	unsigned int lanes;            /* GPUPOOL_LANES, 1 to 16; 0: chosen for machine and link */
};

/* Parses and checks these options, and checks GPUPOOL_TIMEOUT, GPUPOOL_SHM and GPUPOOL_MANAGED. */
GP_MUST_CHECK int gpc_config_session_options(struct gpc_session_options *options, char *error,
					     size_t error_size);

/* Returns GPUPOOL_TIMEOUT in milliseconds: the maximum time without an acknowledgment from the
 * daemon's machine; 0: unlimited. gpc_config_session_options() reports an invalid value. */
unsigned int gpc_config_timeout_ms(void);

/* Prints a warning on standard error if GPUPOOL_LOG contains an unknown word. The word is ignored:
 * invalid logging options must not stop a program. */
void gpc_config_check_log(void);

/* Returns whether lanes may use shared memory where the daemon offers it (GPUPOOL_SHM is not 0). */
bool gpc_config_is_shm_enabled(void);

#endif /* GPC_CONFIG_H */
