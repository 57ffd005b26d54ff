/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA driver library that a worker opens: NVIDIA's libcuda.so.1, or libcuda-soft.so.
 *
 * One table of its functions (codegen/api/driver.h), filled once at start, before any thread;
 * read-only afterwards.  A function that the library lacks answers CUDA_ERROR_NOT_SUPPORTED if it
 * is optional, else opening fails.
 */
#ifndef GPD_DRIVER_H
#define GPD_DRIVER_H

#include "gpd_driver_functions.h"
#include "server/common/config/config_lint.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct gpd_driver {
#define GPD_FIELD(name) __typeof__(name) *name;
	GPD_DRIVER_FUNCTIONS(GPD_FIELD)
#undef GPD_FIELD
	/* Extension of the software device: drops what is queued or running on a stream. */
	CUresult (*gpSoftStreamCancel)(CUstream stream);
	/* Another one: why a kernel cannot run there; NULL in *why_p: it can. */
	CUresult (*gpSoftKernelUnsupported)(CUkernel kernel, const char **why_p);
	bool software;
	char path[4096];
};

extern struct gpd_driver gpd_driver;

/* Stands in the table for what the library lacks. */
CUresult gpd_driver_unsupported(void);
#define gpd_driver_has(name)                                                                       \
	(gpd_driver.name && (void *)gpd_driver.name != (void *)gpd_driver_unsupported)

/* Generated: where each function stands in the table. */
struct gpd_driver_function {
	const char *name;
	size_t offset;
	bool required;
};
extern const struct gpd_driver_function gpd_driver_functions[];
extern const size_t gpd_driver_function_count;

/* Opens path (NULL: NVIDIA's, else the software device if that is allowed).  0, and `error` has a
 * warning or is empty; or -1 with one line in error. */
int gpd_driver_open(const char *path, bool software, char *error, size_t error_size);
gpd_lint_list_devices gpd_driver_list;

/* Whether this result says that the whole process's CUDA is lost (only a new worker repairs it). */
bool gpd_driver_is_sticky(CUresult result);

#endif /* GPD_DRIVER_H */
