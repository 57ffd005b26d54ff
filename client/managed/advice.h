/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory advice: stores cuMemAdvise() and prefetch locations of managed memory, by address range,
 * and returns them for cuMemRangeGetAttribute(). The advice has no other effect.
 *
 * Ownership: process-wide state.
 * Threads: any thread may call; the state has its own lock.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
 * Units: addresses and sizes are bytes; except in gpc_advice_drop(), ranges are extended to whole
 * pages.
 */
#ifndef GPC_ADVICE_H
#define GPC_ADVICE_H

#include <cuda.h>
#include <stdint.h>

/* Stores the advice for a range. Errors:
 * CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_OUT_OF_MEMORY; the stored advice
 * is then unchanged. */
CUresult gpc_advice_set(uint64_t base, uint64_t size, CUmem_advise advice, CUmemLocation location);
/* Stores the location of the last prefetch of a range. Errors: as gpc_advice_set(). */
CUresult gpc_advice_set_prefetched(uint64_t base, uint64_t size, CUmemLocation location);

/* Checks a location of advice or of a prefetch. Errors: CUDA_ERROR_INVALID_VALUE, or
 * CUDA_ERROR_INVALID_DEVICE for an invalid ordinal. */
CUresult gpc_advice_check_location(CUmemLocation location);

/* Writes an attribute that all of the range has in common to data, a buffer of data_size bytes, in
 * the format of cuMemRangeGetAttribute(). If the range has none in common, writes the value for
 * "not set". Returns CUDA_ERROR_INVALID_VALUE if the attribute does not exist or has another
 * size. */
CUresult gpc_advice_get_attribute(uint64_t base, uint64_t size, CUmem_range_attribute attribute,
				  void *data, size_t data_size);

/* Removes all advice for a range of whole pages, which is about to be reused for another
 * allocation. If out of memory, the advice may remain. */
void gpc_advice_drop(uint64_t base, uint64_t size);

#endif /* GPC_ADVICE_H */
