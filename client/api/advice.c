/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/advice.h"

#include "base/lock.h"
#include "client/context/context.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A device is a bit of a mask; the host has the last one. */
#define DEVICES_MAX 63
#define HOST_BIT ((uint64_t)1 << DEVICES_MAX)

struct advice {
	CUmemLocation preferred, prefetched; /* CU_MEM_LOCATION_TYPE_INVALID: none */
	uint64_t accessed;
	bool read_mostly;
};

/* By address; what no segment has nothing was said of. */
struct segment {
	uint64_t base, end;
	struct advice advice;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct segment *segments GP_GUARDED_BY(lock);
static size_t count GP_GUARDED_BY(lock), room GP_GUARDED_BY(lock);

static void
to_pages(uint64_t *base, uint64_t *end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	*base &= ~(page - 1);
	*end = (*end + page - 1) & ~(page - 1);
}

static int
insert(size_t place, const struct segment *segment) GP_LOCKED(lock)
{
	if (count == room) {
		size_t more = room ? room * 2 : 16;
		struct segment *list = reallocarray(segments, more, sizeof(*list));

		if (!list)
			return -ENOMEM;
		segments = list;
		room = more;
	}
	memmove(segments + place + 1, segments + place, (count - place) * sizeof(*segments));
	segments[place] = *segment;
	count++;
	return 0;
}

/* The place of the first segment that ends behind the address. */
static size_t
place_of(uint64_t address) GP_LOCKED(lock)
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

/* No segment goes on across the address. */
static int
cut(uint64_t address) GP_LOCKED(lock)
{
	size_t place = place_of(address);
	struct segment rest;

	if (place == count || segments[place].base >= address)
		return 0;
	rest = segments[place];
	rest.base = address;
	segments[place].end = address;
	return insert(place + 1, &rest);
}

/* [base, end) is whole segments, of which the first one's place comes back. */
static int
cover(uint64_t base, uint64_t end, size_t *place_p) GP_LOCKED(lock)
{
	int r = cut(base);

	if (r == 0)
		r = cut(end);
	*place_p = place_of(base);
	for (size_t i = *place_p; r == 0 && base < end; i++) {
		const struct segment gap = {
			.base = base,
			.end = i < count && segments[i].base < end ? segments[i].base : end,
		};

		if (gap.end > base)
			r = insert(i, &gap);
		base = segments[i].end;
	}
	return r;
}

static uint64_t
bit_of(CUmemLocation location)
{
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? (uint64_t)1 << location.id : HOST_BIT;
}

CUresult
gpc_advice_check(CUmemLocation location)
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

/* Whether the location is looked at, and can be one. */
static CUresult
check(CUmem_advise advice, CUmemLocation location)
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
		return gpc_advice_check(location);
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
		return gpc_advice_check(location);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void
take(struct advice *advice, CUmem_advise what, CUmemLocation location)
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
		advice->accessed |= bit_of(location);
		break;
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		advice->accessed &= ~bit_of(location);
		break;
	}
}

CUresult
gpc_advice_give(uint64_t base, uint64_t size, CUmem_advise advice, CUmemLocation location)
{
	CUresult result = check(advice, location);
	uint64_t end = base + size;
	size_t place;

	if (result != CUDA_SUCCESS)
		return result;
	to_pages(&base, &end);
	(void)pthread_mutex_lock(&lock);
	if (cover(base, end, &place))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (; result == CUDA_SUCCESS && place < count && segments[place].base < end; place++)
		take(&segments[place].advice, advice, location);
	(void)pthread_mutex_unlock(&lock);
	return result;
}

CUresult
gpc_advice_prefetch(uint64_t base, uint64_t size, CUmemLocation location)
{
	CUresult result = gpc_advice_check(location);
	uint64_t end = base + size;
	size_t place;

	if (result != CUDA_SUCCESS)
		return result;
	to_pages(&base, &end);
	(void)pthread_mutex_lock(&lock);
	if (cover(base, end, &place))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (; result == CUDA_SUCCESS && place < count && segments[place].base < end; place++)
		segments[place].advice.prefetched = location;
	(void)pthread_mutex_unlock(&lock);
	return result;
}

void
gpc_advice_forget(uint64_t base, uint64_t size)
{
	uint64_t end = base + size;
	size_t place, behind;

	(void)pthread_mutex_lock(&lock);
	if (count > 0 && cut(base) == 0 && cut(end) == 0) {
		place = behind = place_of(base);
		while (behind < count && segments[behind].base < end)
			behind++;
		memmove(segments + place, segments + behind, (count - behind) * sizeof(*segments));
		count -= behind - place;
	}
	(void)pthread_mutex_unlock(&lock);
}

static bool
is_same(CUmemLocation a, CUmemLocation b)
{
	return a.type == b.type && (a.id == b.id || (a.type != CU_MEM_LOCATION_TYPE_DEVICE &&
						     a.type != CU_MEM_LOCATION_TYPE_HOST_NUMA));
}

/* What was said of the whole range. */
static struct advice
common(uint64_t base, uint64_t end)
{
	const CUmemLocation none = { .type = CU_MEM_LOCATION_TYPE_INVALID };
	struct advice all = { 0 };
	size_t place;

	(void)pthread_mutex_lock(&lock);
	place = place_of(base);
	if (place < count && segments[place].base <= base)
		all = segments[place].advice;
	for (; place < count && base < end; place++) {
		const struct segment *segment = &segments[place];

		if (segment->base > base)
			break;
		base = segment->end;
		all.read_mostly &= segment->advice.read_mostly;
		all.accessed &= segment->advice.accessed;
		if (!is_same(all.preferred, segment->advice.preferred))
			all.preferred = none;
		if (!is_same(all.prefetched, segment->advice.prefetched))
			all.prefetched = none;
	}
	(void)pthread_mutex_unlock(&lock);
	return base < end ? (struct advice){ 0 } : all;
}

/* As the older attributes say it. */
static int32_t
device_of(CUmemLocation location)
{
	if (location.type == CU_MEM_LOCATION_TYPE_INVALID)
		return CU_DEVICE_INVALID;
	return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

static CUresult
tell_accessed(const struct advice *advice, int32_t *devices, size_t room_there)
{
	size_t told = 0;

	for (int32_t id = 0; id < DEVICES_MAX && told < room_there; id++) {
		if (advice->accessed & (uint64_t)1 << id)
			devices[told++] = id;
	}
	if ((advice->accessed & HOST_BIT) && told < room_there)
		devices[told++] = CU_DEVICE_CPU;
	while (told < room_there)
		devices[told++] = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

static bool
number_of(const struct advice *advice, CUmem_range_attribute attribute, int32_t *number)
{
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		*number = advice->read_mostly;
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		*number = device_of(advice->preferred);
		return true;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		*number = device_of(advice->prefetched);
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
gpc_advice_tell(uint64_t base, uint64_t size, CUmem_range_attribute attribute, void *data,
		size_t data_size)
{
	uint64_t end = base + size;
	struct advice advice;
	int32_t number;

	to_pages(&base, &end);
	advice = common(base, end);
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return data_size > 0 && data_size % sizeof(number) == 0
			       ? tell_accessed(&advice, data, data_size / sizeof(number))
			       : CUDA_ERROR_INVALID_VALUE;
	if (data_size != sizeof(number) || !number_of(&advice, attribute, &number))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &number, sizeof(number));
	return CUDA_SUCCESS;
}
