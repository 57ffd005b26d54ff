/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session uses and may use.  The generated dispatcher calls these where the description says
 * ALLOCATES, FREES, LAUNCHES or COPIES, so that every call is counted in one place each; hooks
 * whose amounts only they know (BY_HOOK) call them themselves.  Any thread.
 */
#ifndef GPD_ACCOUNT_H
#define GPD_ACCOUNT_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

struct gpd_account {
	_Atomic uint64_t allocated; /* bytes of device memory held */
	_Atomic uint64_t allocated_peak;
	uint64_t allocated_max; /* quota in bytes; UINT64_MAX: none */
	_Atomic uint64_t launches;
	_Atomic uint64_t copied_in; /* bytes from the client */
	_Atomic uint64_t copied_out;
	_Atomic uint64_t copies; /* copies of any kind */
};

/* CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY past the quota, and nothing is counted. */
CUresult gpd_account_allocate(struct gpd_account *account, uint64_t bytes);
void gpd_account_free(struct gpd_account *account, uint64_t bytes);
void gpd_account_launch(struct gpd_account *account);
void gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out);

#endif /* GPD_ACCOUNT_H */
