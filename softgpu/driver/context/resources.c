/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of green contexts: multiprocessors, split into groups and combined again. */
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x67507372u
/* Group sizes of compute capability 9.0; the second with the flag that ignores coscheduling. */
#define GROUP 8u
#define GROUP_FINE 2u
#define FLAGS_KNOWN                                                                                \
	(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING |                                         \
	 CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE)

/* Stored in the part of CUdevResource reserved for the driver. */
struct inside {
	uint32_t magic;
	uint64_t split; /* number of the call that created it; 0: resources of a context */
	struct gs_set set;
};

_Static_assert(sizeof(struct inside) <= sizeof(((CUdevResource *)NULL)->_internal_padding),
	       "a resource contains its own description");

struct desc {
	struct gs_object object;
	struct desc *next;
	struct gs_set set;
};

/* CUDA has no call that destroys a descriptor, so one is stored for each distinct set. */
static struct {
	pthread_mutex_t lock;
	struct desc *first;
} descs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned int
set_count(const struct gs_set *set)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < GS_MULTIPROCESSORS_MAX / 64; i++)
		count += (unsigned int)__builtin_popcountll(set->bits[i]);
	return count;
}

static void
make(CUdevResource *resource, const struct gs_set *set, uint64_t split, unsigned int group)
{
	const struct inside inside = { .magic = MAGIC, .split = split, .set = *set };

	memset(resource, 0, sizeof(*resource));
	resource->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(resource->_internal_padding, &inside, sizeof(inside));
	resource->sm.smCount = set_count(set);
	resource->sm.minSmPartitionSize = group;
	resource->sm.smCoscheduledAlignment = group;
}

static CUresult
read_inside(const CUdevResource *resource, struct inside *inside)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (resource->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	memcpy(inside, resource->_internal_padding, sizeof(*inside));
	return inside->magic == MAGIC ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gs_resource_fill(CUdevResource *resource, const struct gs_set *set, CUdevResourceType type)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	make(resource, set, 0, GROUP);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	CUresult r = gs_check_device(device);
	struct gs_set all = { { 0 } };

	if (r)
		return r;
	for (int i = 0; i < gs_device_multiprocessors(); i++)
		gs_set_add(&all, (unsigned int)i);
	return gs_resource_fill(resource, &all, type);
}

/* Returns the next `size` multiprocessors of the set, starting at *at. */
static struct gs_set
cut(const struct gs_set *set, unsigned int *at, unsigned int size)
{
	struct gs_set part = { { 0 } };

	for (; size && *at < GS_MULTIPROCESSORS_MAX; ++*at) {
		if (!gs_set_has(set, *at))
			continue;
		gs_set_add(&part, *at);
		size--;
	}
	return part;
}

static unsigned int
group_size(unsigned int flags, unsigned int wanted)
{
	bool fine = flags & CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING;
	unsigned int step = fine ? GROUP_FINE : GROUP;

	return wanted ? (wanted + step - 1) / step * step : step;
}

CUresult CUDAAPI
cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *count, const CUdevResource *input,
			    CUdevResource *remaining, unsigned int flags, unsigned int wanted)
{
	static uint64_t splits;
	CUresult r = gs_enter_device();
	struct inside inside;
	struct gs_set part;
	unsigned int size, most, at = 0;
	uint64_t split;

	if (!r && (!count || flags & ~(unsigned int)FLAGS_KNOWN))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = read_inside(input, &inside);
	if (!r && (wanted > set_count(&inside.set) || (result && !*count)))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	size = group_size(flags, wanted);
	most = set_count(&inside.set) / size;
	/* The result of a split must become a green context before it can be split again. */
	if (!most || inside.split)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	if (!result || *count > most)
		*count = most;
	split = __atomic_add_fetch(&splits, 1, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < *count; i++) {
		part = cut(&inside.set, &at, size);
		if (result)
			make(&result[i], &part, split, group_size(flags, 0));
	}
	if (!remaining)
		return CUDA_SUCCESS;
	part = cut(&inside.set, &at, GS_MULTIPROCESSORS_MAX);
	memset(remaining, 0, sizeof(*remaining));
	if (set_count(&part))
		make(remaining, &part, split, group_size(flags, 0));
	return CUDA_SUCCESS;
}

/* Called with the lock held. */
static struct desc *
find_desc(const struct gs_set *set)
{
	struct desc *desc = descs.first;

	while (desc && memcmp(&desc->set, set, sizeof(*set)) != 0)
		desc = desc->next;
	if (desc)
		return desc;
	desc = calloc(1, sizeof(*desc));
	if (!desc)
		return NULL;
	gs_object_init(&desc->object, GS_KIND_RESOURCES, NULL, NULL);
	desc->set = *set;
	desc->next = descs.first;
	descs.first = desc;
	gs_object_publish(&desc->object);
	return desc;
}

CUresult CUDAAPI
cuDevResourceGenerateDesc(CUdevResourceDesc *handle, CUdevResource *resources, unsigned int count)
{
	CUresult r = gs_enter_device();
	struct gs_set all = { { 0 } };
	struct inside first, inside;
	struct desc *desc;

	if (r)
		return r;
	if (!handle || !resources || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		r = read_inside(&resources[i], &inside);
		if (r)
			return r;
		if (i == 0)
			first = inside;
		if (inside.split != first.split)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		for (unsigned int w = 0; w < GS_MULTIPROCESSORS_MAX / 64; w++)
			all.bits[w] |= inside.set.bits[w];
	}
	pthread_mutex_lock(&descs.lock);
	desc = find_desc(&all);
	pthread_mutex_unlock(&descs.lock);
	if (!desc)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handle = (CUdevResourceDesc)desc;
	return CUDA_SUCCESS;
}

CUresult
gs_resources_get(CUdevResourceDesc handle, struct gs_set *set)
{
	struct desc *desc = gs_object_get(handle, GS_KIND_RESOURCES);

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	*set = desc->set;
	gs_object_put(&desc->object);
	return CUDA_SUCCESS;
}
