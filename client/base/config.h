/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration of the client library from the environment of the process (gpupool.7).
 *
 * Ownership: returned strings belong to the environment; they must not be freed or changed.
 * Threads: any thread may call, except where noted. No other thread may change the environment
 * meanwhile. Each function reads the environment anew, except where noted: REMOTE_GPU, RCUDA_...
 * and GPUPOOL_... with gp_environment_get() (base/environment.h), which finds them even after the
 * program has cleared its environment; CUDA_... with getenv().
 * Errors: a function with a buffer `error` returns 0, or GP_E_INVALID with a NUL-terminated text in
 * `error` that names the variable and the reason. Its other results are then undefined, except
 * where noted.
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

/* Parses REMOTE_GPU or, if it is not set, RCUDA_DEVICE_0, RCUDA_DEVICE_1 and so on, into at most
 * max addresses, each of a daemon or of one of its devices. An address without a scheme gets tls://
 * if gpc_config_has_credentials() or gpc_pools_config_want_tls() (pools.h). Returns 0 and sets
 * *count_p to the number of addresses, which is at least 1. Returns GP_E_INVALID if neither
 * REMOTE_GPU nor RCUDA_DEVICE_COUNT, the number of the RCUDA_DEVICE_ variables, is set, an address
 * is invalid or missing, or there are more than max. May read the files of pools.h. */
GP_MUST_CHECK int gpc_config_daemons(struct gp_url *urls, int max, int *count_p, char *error,
				     size_t error_size);

/* Returns whether the environment names credentials: GPUPOOL_TOKEN_FILE, or one of GPUPOOL_TLS_CA,
 * _CERT, _KEY and _CRL, is set and not empty. */
bool gpc_config_has_credentials(void);

/* Finds a variable in the environment whose name is probably a misspelling of REMOTE_GPU. Returns
 * true and stores the NUL-terminated name, or returns false; the buffer's contents are then
 * undefined. Names that do not fit in the buffer are ignored. Must only be called while the process
 * has one thread, because it reads `environ`. */
bool gpc_config_find_misspelled(char *name, size_t size);

/* Parses GPUPOOL_WAIT, the maximum time to wait for a session slot while the daemon is full: a
 * number of seconds, or a number with the suffix s, m or h, at most a week. Returns 0 and sets
 * *seconds_p, which is 0 (do not wait) if the variable is not set or empty. Returns GP_E_INVALID,
 * with *seconds_p set to 0, if it is invalid. */
GP_MUST_CHECK int gpc_config_get_wait(unsigned int *seconds_p, char *error, size_t error_size);
/* Parses a time in the format of GPUPOOL_WAIT; text must not be NULL. Returns false, with
 * *seconds_p unchanged, if it is invalid. */
bool gpc_config_parse_wait(const char *text, unsigned int *seconds_p);

/* Returns CU_MODULE_EAGER_LOADING if CUDA_MODULE_LOADING is EAGER, in any case of letters, else
 * CU_MODULE_LAZY_LOADING. */
CUmoduleLoadingMode gpc_config_module_loading(void);

/* Returns whether CUDA_LAUNCH_BLOCKING was set to a number other than 0 when this function was
 * first called. */
bool gpc_config_launch_blocking(void);

/* Applies CUDA_VISIBLE_DEVICES to `count` devices with these UUIDs. list: the value of the
 * variable; NULL: it is not set, so all devices are visible. Writes the indices of the visible
 * devices in the order of the list to indices[], which has `count` elements, and returns their
 * number (0: none). An entry is an index, or GPU- and the beginning of a UUID that no other device
 * shares. The list ends at the first invalid or repeated entry, as in NVIDIA's driver. */
int gpc_config_visible_devices(const char *list, const CUuuid *uuids, int count, int *indices);

/* Requested isolation of a session from other sessions (GPUPOOL_ISOLATION); values of enum
 * Isolation (control.proto). */
enum gpc_isolation {
	GPC_ISOLATION_ANY,
	GPC_ISOLATION_SHARED,  /* in the worker that tenants share */
	GPC_ISOLATION_SESSION, /* in a worker of its own */
	GPC_ISOLATION_TENANT   /* in a worker with sessions of its tenant only */
};
/* Maximum number of devices with a memory limit. */
#define GPC_SESSION_OPTIONS_DEVICES 32
/* Options that the environment sets for a session. They need no freeing; `tenant` belongs to the
 * environment. */
struct gpc_session_options {
	unsigned int thread_percentage; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, 1 to 100, rounded up;
					   0: not set */
	int priority;                   /* CUDA_MPS_CLIENT_PRIORITY: 0: normal; 1: below normal */
	uint64_t memory[GPC_SESSION_OPTIONS_DEVICES]; /* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT by device
							 number, in bytes; 0: no limit set; an entry
							 with the key * sets all elements that no
							 other entry sets */
	/* number of elements of memory[] up to the last one set */
	int memory_count;
	enum gpc_isolation isolation;  /* GPUPOOL_ISOLATION */
	const char *tenant;            /* GPUPOOL_TENANT; NULL: not set or empty */
	enum gp_pack_mode compression; /* GPUPOOL_COMPRESSION */
	unsigned int lanes; /* GPUPOOL_LANES, the number of data connections, 1 to 16; 0: chosen by
			       the client */
};

/* Parses and checks the variables of struct gpc_session_options, and checks GPUPOOL_TIMEOUT,
 * GPUPOOL_SHM and GPUPOOL_MANAGED. Returns 0 and fills *options, with defaults for variables that
 * are not set or empty. Returns GP_E_INVALID at the first invalid variable. May print a warning
 * about GPUPOOL_TIMEOUT, by gpc_log_warn() (log.h). */
GP_MUST_CHECK int gpc_config_session_options(struct gpc_session_options *options, char *error,
					     size_t error_size);

/* Returns GPUPOOL_TIMEOUT in milliseconds: the maximum time without an acknowledgment from the
 * daemon's machine. 0: unlimited. If it is not set or invalid, returns the default
 * (transport/timeout.h); gpc_config_session_options() reports an invalid value. */
unsigned int gpc_config_timeout_ms(void);

/* Prints a warning, by gpc_log_warn() (log.h), if GPUPOOL_LOG contains an unknown word. Such a word
 * is ignored, because invalid logging options must not stop a program. */
void gpc_config_check_log(void);

/* Returns whether lanes (data connections) may use shared memory if the daemon offers it. Only
 * GPUPOOL_SHM=0 forbids it. */
bool gpc_config_is_shm_enabled(void);

#endif /* GPC_CONFIG_H */
