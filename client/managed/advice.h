/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory advice: stores cuMemAdvise() and prefetch locations of managed memory, by address range,
 * and returns them for cuMemRangeGetAttribute(). The advice has no other effect.
 *
 * Ownership: process-wide state.
 * Threads: any thread may call; the state has its own lock. No function waits.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
 * Units: addresses and sizes are bytes. Ranges are extended to whole pages, except in
 * gpc_advice_drop(). The caller has checked that they are managed memory.
 */
#ifndef GPC_ADVICE_H
#define GPC_ADVICE_H

#include <cuda.h>
#include <stdint.h>

/* Stores the advice for a range. location: ignored by advice that has none. Returns
 * CUDA_ERROR_INVALID_VALUE for unknown advice or a location that does not suit it,
 * CUDA_ERROR_INVALID_DEVICE as gpc_advice_check_location() does, or CUDA_ERROR_OUT_OF_MEMORY; the
 * stored advice is then unchanged. */
CUresult gpc_advice_set(uint64_t base, uint64_t size, CUmem_advise advice, CUmemLocation location);
/* Stores the location of the last prefetch of a range. Returns an error of
 * gpc_advice_check_location() or CUDA_ERROR_OUT_OF_MEMORY; the stored location is then
 * unchanged. */
CUresult gpc_advice_set_prefetched(uint64_t base, uint64_t size, CUmemLocation location);

/* Checks a location of advice or of a prefetch. Returns CUDA_ERROR_INVALID_VALUE for an invalid
 * type or NUMA node, or CUDA_ERROR_INVALID_DEVICE if there is no device with this ordinal. */
CUresult gpc_advice_check_location(CUmemLocation location);

/* Writes the value of an attribute that all of the range has in common to data, a buffer of
 * data_size bytes, in the format of cuMemRangeGetAttribute(). If there is none, writes the value
 * for "not set". Returns CUDA_ERROR_INVALID_VALUE, without writing, if the attribute does not exist
 * or data_size does not suit it. */
CUresult gpc_advice_get_attribute(uint64_t base, uint64_t size, CUmem_range_attribute attribute,
				  void *data, size_t data_size);

/* Removes all advice for the range, whose memory was newly allocated. If out of memory, old advice
 * may remain. */
void gpc_advice_drop(uint64_t base, uint64_t size);

#endif /* GPC_ADVICE_H */
