/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: managed memory. Advice and prefetches are accepted although the device reports
 * no concurrent managed access, because programs do not always query that; docs/managed.md
 * describes their effect.
 */
#include "client/context/context.h"
#include "client/managed/advice.h"
#include "client/managed/managed_copy.h"
#include "client/memory/address.h"
#include "client/pages/pages.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "gpc_calls.h"

CUresult
gpc_cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!dptr || bytesize == 0 ||
	    (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_managed_alloc(context, bytesize, dptr);
	if (result == CUDA_SUCCESS)
		gpc_advice_drop(*dptr, bytesize);
	return result;
}

/* Checks that the whole range is managed memory of one allocation. */
static CUresult
managed_range_check(uint64_t base, uint64_t size, struct gpc_address *found)
{
	gpc_address_lookup(base, found);
	return size > 0 && found->kind == GPC_ADDRESS_DEVICE && found->managed &&
			       size <= found->size - (base - found->base)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	struct gpc_context *context;
	struct gpc_address found;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = managed_range_check(devPtr, count, &found);
	return result == CUDA_SUCCESS ? gpc_advice_set(devPtr, count, advice, location) : result;
}

/* Before CUDA 12.2 a location was a device ordinal. */
static CUmemLocation
device_to_location(CUdevice device)
{
	if (device == CU_DEVICE_CPU)
		return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST };
	return (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device };
}

CUresult
gpc_cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device)
{
	return gpc_cuMemAdvise_v2(devPtr, count, advice, device_to_location(device));
}

/* To a device: pages that are valid only here are sent, and stay readable here. To the host:
 * nothing is fetched until the first access, which then fetches a large part at once. */
static CUresult
range_prefetch(uint64_t base, uint64_t size, CUmemLocation location)
{
	struct gpc_address found;
	CUresult result = managed_range_check(base, size, &found);

	if (result == CUDA_SUCCESS)
		result = gpc_advice_set_prefetched(base, size, location);
	if (result != CUDA_SUCCESS)
		return result;
	if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
		gpc_pages_expect(base);
		return CUDA_SUCCESS;
	}
	return gpc_managed_prefetch(found.context->scope.session, base, size);
}

CUresult
gpc_cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
			  unsigned int flags, CUstream hStream)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result == CUDA_SUCCESS && flags != 0)
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? range_prefetch(devPtr, count, location) : result;
}

CUresult
gpc_cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	return gpc_cuMemPrefetchAsync_v2(devPtr, count, device_to_location(dstDevice), 0, hStream);
}

struct batch {
	const CUdeviceptr *addresses;
	const size_t *sizes;
	size_t count;
	const CUmemLocation *locations;
	const size_t *begins; /* index of the first range of each location */
	size_t location_count;
};

static CUresult
batch_check(const struct batch *batch, unsigned long long flags, CUstream hStream)
{
	struct gpc_address found;
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!batch->addresses || !batch->sizes || batch->count == 0 || flags != 0 || stream->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->count && result == CUDA_SUCCESS; i++)
		result = managed_range_check(batch->addresses[i], batch->sizes[i], &found);
	return result;
}

static CUresult
batch_check_locations(const struct batch *batch)
{
	CUresult result = CUDA_SUCCESS;

	if (!batch->locations || !batch->begins || batch->location_count == 0 ||
	    batch->location_count > batch->count || batch->begins[0] != 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < batch->location_count && result == CUDA_SUCCESS; i++) {
		if (batch->begins[i] >= batch->count ||
		    (i > 0 && batch->begins[i] <= batch->begins[i - 1]))
			return CUDA_ERROR_INVALID_VALUE;
		result = gpc_advice_check_location(batch->locations[i]);
	}
	return result;
}

static CUresult
batch_prefetch(const struct batch *batch, unsigned long long flags, CUstream hStream)
{
	CUresult result = batch_check(batch, flags, hStream);
	size_t at = 0;

	if (result == CUDA_SUCCESS)
		result = batch_check_locations(batch);
	for (size_t i = 0; i < batch->count && result == CUDA_SUCCESS; i++) {
		at += at + 1 < batch->location_count && batch->begins[at + 1] == i;
		result = range_prefetch(batch->addresses[i], batch->sizes[i], batch->locations[at]);
	}
	return result;
}

CUresult
gpc_cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
			    CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
			    size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	const struct batch batch = { dptrs,        sizes,           count,
				     prefetchLocs, prefetchLocIdxs, numPrefetchLocs };

	return batch_prefetch(&batch, flags, hStream);
}

/* A read of discarded memory may return any value, including the old one. So only the arguments are
 * checked. */
CUresult
gpc_cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count,
			   unsigned long long flags, CUstream hStream)
{
	const struct batch batch = { .addresses = dptrs, .sizes = sizes, .count = count };

	return batch_check(&batch, flags, hStream);
}

CUresult
gpc_cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute,
			   CUdeviceptr devPtr, size_t count)
{
	return gpc_cuMemRangeGetAttributes(&data, &dataSize, &attribute, 1, devPtr, count);
}

CUresult
gpc_cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
			    size_t numAttributes, CUdeviceptr devPtr, size_t count)
{
	struct gpc_context *context;
	struct gpc_address found;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS && (!data || !dataSizes || !attributes || numAttributes == 0))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = managed_range_check(devPtr, count, &found);
	for (size_t i = 0; i < numAttributes && result == CUDA_SUCCESS; i++)
		result = data[i] ? gpc_advice_get_attribute(devPtr, count, attributes[i], data[i],
							    dataSizes[i])
				 : CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* Attachment limits which stream's work excludes CPU access. Here a CPU access waits for all work,
 * which is correct for every kind of attachment, so nothing is stored. */
CUresult
gpc_cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	struct gpc_address found;
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST &&
	    flags != CU_MEM_ATTACH_SINGLE)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags == CU_MEM_ATTACH_SINGLE && stream->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	result = managed_range_check(dptr, 1, &found);
	if (result == CUDA_SUCCESS && length != 0 && length != found.size)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}
