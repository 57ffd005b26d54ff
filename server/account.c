/* SPDX-License-Identifier: Apache-2.0 */
#include "server/account.h"

CUresult
gpd_account_allocate(struct gpd_account *account, uint64_t bytes)
{
	uint64_t before = atomic_load_explicit(&account->allocated, memory_order_relaxed);
	uint64_t peak;

	do {
		if (bytes > account->allocated_max || before > account->allocated_max - bytes)
			return CUDA_ERROR_OUT_OF_MEMORY;
	} while (!atomic_compare_exchange_weak_explicit(&account->allocated, &before,
							before + bytes, memory_order_relaxed,
							memory_order_relaxed));
	peak = atomic_load_explicit(&account->allocated_peak, memory_order_relaxed);
	while (peak < before + bytes && !atomic_compare_exchange_weak_explicit(
						&account->allocated_peak, &peak, before + bytes,
						memory_order_relaxed, memory_order_relaxed))
		continue;
	return CUDA_SUCCESS;
}

void
gpd_account_free(struct gpd_account *account, uint64_t bytes)
{
	atomic_fetch_sub_explicit(&account->allocated, bytes, memory_order_relaxed);
}

void
gpd_account_launch(struct gpd_account *account)
{
	atomic_fetch_add_explicit(&account->launches, 1, memory_order_relaxed);
}

void
gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out)
{
	atomic_fetch_add_explicit(&account->copies, 1, memory_order_relaxed);
	if (in)
		atomic_fetch_add_explicit(&account->copied_in, in, memory_order_relaxed);
	if (out)
		atomic_fetch_add_explicit(&account->copied_out, out, memory_order_relaxed);
}
