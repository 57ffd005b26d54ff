/* SPDX-License-Identifier: Apache-2.0 */
#include "client/managed/advice.h"

#include "base/lock.h"
#include "client/base/list.h"
#include "client/context/context.h"
#include "client/memory/address.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A device is a bit of a mask; the last bit is the host. */
#define DEVICES_MAX 63
#define HOST_BIT ((uint64_t)1 << DEVICES_MAX)

struct advice {
	CUmemLocation preferred, prefetched; /* CU_MEM_LOCATION_TYPE_INVALID: not set */
	uint64_t accessed;
	bool read_mostly;
};

/* Sorted by address. Addresses in no segment have no advice. */
struct segment {
	uint64_t base, end;
	struct advice advice;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *segments GP_GUARDED_BY(lock);
static size_t count GP_GUARDED_BY(lock), capacity GP_GUARDED_BY(lock);

static int
segment_insert(size_t place, const struct segment *segment) GP_LOCKED(lock)
{
	struct segment *list = gpc_list_grow(segments, count, &capacity, sizeof(*list));

	if (!list)
		return -ENOMEM;
	segments = list;
	memmove(segments + place + 1, segments + place, (count - place) * sizeof(*segments));
	segments[place] = *segment;
	count++;
	return 0;
}

/* Returns the index of the first segment that ends after the address. */
static size_t
segment_lower_bound(uint64_t address) GP_LOCKED(lock)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (segments[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Splits the segment that contains the address, so that none extends across it. */
static int
segment_split(uint64_t address) GP_LOCKED(lock)
{
	size_t place = segment_lower_bound(address);
	struct segment rest;

	if (place == count || segments[place].base >= address)
		return 0;
	rest = segments[place];
	rest.base = address;
	segments[place].end = address;
	return segment_insert(place + 1, &rest);
}

/* Makes [base, end) consist of whole segments, and stores the index of the first. */
static int
segments_cover(uint64_t base, uint64_t end, size_t *place_p) GP_LOCKED(lock)
{
	int r = segment_split(base);

	if (r == 0)
		r = segment_split(end);
	*place_p = segment_lower_bound(base);
	for (size_t i = *place_p; r == 0 && base < end; i++) {
		const struct segment gap = {
			.base = base,
			.end = i < count && segments[i].base < end ? segments[i].base : end,
		};

		if (gap.end > base)
			r = segment_insert(i, &gap);
		base = segments[i].end;
	}
	return r;
}

static uint64_t
location_to_bit(CUmemLocation location)
{
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? (uint64_t)1 << location.id : HOST_BIT;
}

CUresult
gpc_advice_check_location(CUmemLocation location)
{
	switch (location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return gpc_device_get(location.id) && location.id < DEVICES_MAX
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return location.id >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Checks the advice, and the location if the advice uses it. */
static CUresult
advice_check(CUmem_advise advice, CUmemLocation location)
{
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return CUDA_SUCCESS;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		if (location.type != CU_MEM_LOCATION_TYPE_DEVICE &&
		    location.type != CU_MEM_LOCATION_TYPE_HOST)
			return CUDA_ERROR_INVALID_VALUE;
		return gpc_advice_check_location(location);
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		return gpc_advice_check_location(location);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void
advice_apply(struct advice *advice, CUmem_advise what, CUmemLocation location)
{
	switch (what) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
		advice->read_mostly = true;
		break;
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
		advice->read_mostly = false;
		break;
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		advice->preferred = location;
		break;
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		advice->preferred = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_INVALID };
		break;
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
		advice->accessed |= location_to_bit(location);
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		advice->accessed &= ~location_to_bit(location);
		break;
	}
}

/* Stores the advice or, if it is NULL, the location of the last prefetch. */
static CUresult
segments_store(uint64_t base, uint64_t size, const CUmem_advise *advice, CUmemLocation location)
{
	CUresult result = CUDA_SUCCESS;
	uint64_t end = gpc_page_above(base + size);
	size_t place;

	base = gpc_page_below(base);
	(void)pthread_mutex_lock(&lock);
	if (segments_cover(base, end, &place))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (; result == CUDA_SUCCESS && place < count && segments[place].base < end; place++) {
		if (advice)
			advice_apply(&segments[place].advice, *advice, location);
		else
			segments[place].advice.prefetched = location;
	}
	(void)pthread_mutex_unlock(&lock);
	return result;
}

CUresult
gpc_advice_set(uint64_t base, uint64_t size, CUmem_advise advice, CUmemLocation location)
{
	CUresult result = advice_check(advice, location);

	return result == CUDA_SUCCESS ? segments_store(base, size, &advice, location) : result;
}

CUresult
gpc_advice_set_prefetched(uint64_t base, uint64_t size, CUmemLocation location)
{
	CUresult result = gpc_advice_check_location(location);

	return result == CUDA_SUCCESS ? segments_store(base, size, NULL, location) : result;
}

void
gpc_advice_drop(uint64_t base, uint64_t size)
{
	uint64_t end = base + size;
	size_t place, after;

	(void)pthread_mutex_lock(&lock);
	if (count > 0 && segment_split(base) == 0 && segment_split(end) == 0) {
		place = after = segment_lower_bound(base);
		while (after < count && segments[after].base < end)
			after++;
		memmove(segments + place, segments + after, (count - after) * sizeof(*segments));
		count -= after - place;
	}
	(void)pthread_mutex_unlock(&lock);
}

static bool
location_is_same(CUmemLocation a, CUmemLocation b)
{
	return a.type == b.type && (a.id == b.id || (a.type != CU_MEM_LOCATION_TYPE_DEVICE &&
						     a.type != CU_MEM_LOCATION_TYPE_HOST_NUMA));
}

/* Returns the advice that all of the range has in common. */
static struct advice
advice_get_common(uint64_t base, uint64_t end)
{
	const CUmemLocation none = { .type = CU_MEM_LOCATION_TYPE_INVALID };
	struct advice all = { 0 };
	size_t place;

	(void)pthread_mutex_lock(&lock);
	place = segment_lower_bound(base);
	if (place < count && segments[place].base <= base)
		all = segments[place].advice;
	for (; place < count && base < end; place++) {
		const struct segment *segment = &segments[place];

		if (segment->base > base)
			break;
		base = segment->end;
		all.read_mostly &= segment->advice.read_mostly;
		all.accessed &= segment->advice.accessed;
		if (!location_is_same(all.preferred, segment->advice.preferred))
			all.preferred = none;
		if (!location_is_same(all.prefetched, segment->advice.prefetched))
			all.prefetched = none;
	}
	(void)pthread_mutex_unlock(&lock);
	return base < end ? (struct advice){ 0 } : all;
}

/* The older attributes report a location as a device ordinal. */
static int32_t
location_to_device(CUmemLocation location)
{
	if (location.type == CU_MEM_LOCATION_TYPE_INVALID)
		return CU_DEVICE_INVALID;
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

static CUresult
advice_list_accessed(const struct advice *advice, int32_t *devices, size_t devices_max)
{
	size_t written = 0;

	for (int32_t id = 0; id < DEVICES_MAX && written < devices_max; id++) {
		if (advice->accessed & (uint64_t)1 << id)
			devices[written++] = id;
	}
	if ((advice->accessed & HOST_BIT) && written < devices_max)
		devices[written++] = CU_DEVICE_CPU;
	while (written < devices_max)
		devices[written++] = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

static bool
advice_get_number(const struct advice *advice, CUmem_range_attribute attribute, int32_t *number)
{
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*number = advice->read_mostly;
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*number = location_to_device(advice->preferred);
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*number = location_to_device(advice->prefetched);
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		*number = (int32_t)advice->preferred.type;
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		*number = advice->preferred.id;
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		*number = (int32_t)advice->prefetched.type;
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		*number = advice->prefetched.id;
		return true;
	default:
		return false;
	}
}

CUresult
gpc_advice_get_attribute(uint64_t base, uint64_t size, CUmem_range_attribute attribute, void *data,
			 size_t data_size)
{
	const struct advice advice =
		advice_get_common(gpc_page_below(base), gpc_page_above(base + size));
	int32_t number;

	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return data_size > 0 && data_size % sizeof(number) == 0
			       ? advice_list_accessed(&advice, data, data_size / sizeof(number))
			       : CUDA_ERROR_INVALID_VALUE;
	if (data_size != sizeof(number) || !advice_get_number(&advice, attribute, &number))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &number, sizeof(number));
	return CUDA_SUCCESS;
}
