/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that are parts of others: the green contexts that a program creates. */
#include "server/worker/device/driver.h"
#include "server/worker/device/partition_table.h"

#include <stdlib.h>

_Static_assert(GPD_SPLIT_MAX + 1 <= GPD_GROUPS_MAX, "there is room for all groups and the rest");

struct gpd_partition *
gpd_partition_part(int device, struct gpd_partition *base, const struct gpd_split *split,
		   bool lenient)
{
	struct gpd_partition *partition = calloc(1, sizeof(*partition));

	if (!partition) {
		gpd_partition_unref(base);
		return NULL;
	}
	partition->is_part = true;
	partition->base = base;
	partition->split = *split;
	partition->lenient = lenient;
	partition->device = device;
	partition->refs = 1;
	pthread_mutex_init(&partition->lock, NULL);
	return partition;
}

bool
gpd_partition_has_base(const struct gpd_partition *partition, const struct gpd_partition *base)
{
	return partition && partition->is_part && partition->base == base;
}

static bool
split_has_group(const struct gpd_split *split, unsigned int group)
{
	return group < GPD_SPLIT_MAX && split->picks[group / 64] >> group % 64 & 1;
}

/* CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION: the split has fewer groups than selected. */
static CUresult
groups_pick(const struct gpd_split *split, const CUdevResource *whole, CUdevResource *resources,
	    unsigned int *count)
{
	CUdevResource rest = { 0 };
	unsigned int made = split->groups, wanted = split->rest;
	CUresult result = gpd_driver.cuDevSmResourceSplitByCount(resources, &made, whole, &rest,
								 split->flags, split->least);

	if (result != CUDA_SUCCESS)
		return result;
	for (unsigned int i = 0; i < GPD_SPLIT_MAX; i++)
		wanted += split_has_group(split, i);
	for (unsigned int i = 0; i < made; i++) {
		if (split_has_group(split, i))
			resources[(*count)++] = resources[i];
	}
	if (split->rest && rest.type == CU_DEV_RESOURCE_TYPE_SM)
		resources[(*count)++] = rest;
	return *count == wanted ? CUDA_SUCCESS : CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
}

CUresult
gpd_part_collect(const struct gpd_partition *partition, const _Atomic bool *given_up,
		 CUdevResource *resources, unsigned int *count)
{
	const struct gpd_split *split = &partition->split;
	CUdevResource whole;
	CUresult result =
		gpd_partition_resource(partition->base, partition->device, given_up, &whole);

	if (result != CUDA_SUCCESS)
		return result;
	if (split->groups)
		result = groups_pick(split, &whole, resources, count);
	if (!split->groups || (result != CUDA_SUCCESS && partition->lenient)) {
		resources[0] = whole;
		*count = 1;
		result = CUDA_SUCCESS;
	}
	return result;
}
