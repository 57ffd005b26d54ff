/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver library that a worker opens: NVIDIA's libcuda.so.1, or the software device
 * libcuda-soft.so.
 *
 * Its functions are in one table (codegen/api/driver.h). An optional function that the library
 * lacks returns CUDA_ERROR_NOT_SUPPORTED; without a required one the library is rejected.
 *
 * Ownership: the library stays open as long as the process runs.
 * Errors: a library that is rejected leaves the table empty; only gpd_driver_is_sticky() may then
 * be called.
 * Threads: the table is filled at start, before other threads exist, and is read-only afterwards.
 */
#ifndef GPD_DRIVER_H
#define GPD_DRIVER_H

#include "gpd_driver_functions.h"
#include "server/common/config/config_lint.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* The table of functions. An optional function without an entry in the library is
 * gpd_driver_unsupported(). */
struct gpd_driver {
#define GPD_FIELD(name) __typeof__(name) *name;
	GPD_DRIVER_FUNCTIONS(GPD_FIELD)
#undef GPD_FIELD
	/* Extension of the software device: cancels the work queued or running on a stream. NULL:
	 * not available, as with NVIDIA's driver. */
	CUresult (*gpSoftStreamCancel)(CUstream stream);
	/* Extension of the software device: sets *why_p to the static text why it cannot run a
	 * kernel, or to NULL if it can. NULL: NVIDIA's driver. */
	CUresult (*gpSoftKernelUnsupported)(CUkernel kernel, const char **why_p);
	bool software;   /* it is the software device */
	char path[4096]; /* file of the library */
};

extern struct gpd_driver gpd_driver;

/* Table entry of an optional function that the library lacks. Always returns
 * CUDA_ERROR_NOT_SUPPORTED. */
CUresult gpd_driver_unsupported(void);
/* Returns whether the library has the function. For optional functions; only valid after
 * gpd_driver_open(). */
#define gpd_driver_has(name)                                                                       \
	(gpd_driver.name && (void *)gpd_driver.name != (void *)gpd_driver_unsupported)

/* Name and offset of each function in the table; generated. */
struct gpd_driver_function {
	const char *name;
	size_t offset;
	bool required;
};
extern const struct gpd_driver_function gpd_driver_functions[];
extern const size_t gpd_driver_function_count;

/* Opens the library at path and fills the table; the caller then calls cuInit(). If path is NULL,
 * opens NVIDIA's library; if that fails or reports no device, and `software` is true, opens the
 * software device instead: the file that GPUPOOL_SOFT_DRIVER names, or the one next to the daemon.
 * Returns 0, with a one-line warning or "" in error; or -1, with the reason as one line of text in
 * error, truncated to error_size. Called once, before other threads exist. */
int gpd_driver_open(const char *path, bool software, char *error, size_t error_size);
/* Opens the driver library as gpd_driver_open() does and lists its devices, without creating
 * contexts, for a check of the configuration (gpd_lint_list_devices in config_lint.h). Not in a
 * worker. Removes REMOTE_GPU from the environment. Returns the number of devices, at most
 * GPD_LEDGER_DEVICES; 0 if CUDA does not initialize; or -1 with one line of text in error. */
gpd_lint_list_devices gpd_driver_list;

/* Returns whether this result means that CUDA is unusable in the whole process, so that only a new
 * worker can recover. */
bool gpd_driver_is_sticky(CUresult result);

#endif /* GPD_DRIVER_H */
