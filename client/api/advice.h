/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program has advised about managed memory: kept, told again (cuMemRangeGetAttribute), and
 * nothing else.  Ranges are of bytes, and grow to whole pages.  Any thread.
 */
#ifndef GPC_ADVICE_H
#define GPC_ADVICE_H

#include <cuda.h>
#include <stdint.h>

/* The advice, or (prefetch) a location that it was to go to.  CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_INVALID_DEVICE, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_advice_set(uint64_t base, uint64_t size, CUmem_advise advice, CUmemLocation location);
CUresult gpc_advice_set_prefetched(uint64_t base, uint64_t size, CUmemLocation location);

/* Whether there can be such a location at all: CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE.
 */
CUresult gpc_advice_check_location(CUmemLocation location);

/* CUDA_ERROR_INVALID_VALUE: there is no such attribute, or it has another size. */
CUresult gpc_advice_get_attribute(uint64_t base, uint64_t size, CUmem_range_attribute attribute,
				  void *data, size_t data_size);

/* The memory is another's from now on. */
void gpc_advice_drop(uint64_t base, uint64_t size);

#endif /* GPC_ADVICE_H */
