/* SPDX-License-Identifier: Apache-2.0 */
/* How multiprocessors are divided among sessions, on a device that has 132 of them. */
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "tests/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ALL 132u
#define GROUPS_MAX 66

/* A descriptor, and the green context made of it. */
struct green {
	bool has[GROUPS_MAX];
	int streams;
};

static int greens, contexts_made;
static CUresult create_result;
static unsigned int multiprocessors = ALL;

static CUresult
device_resource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	memset(resource, 0, sizeof(*resource));
	resource->type = type;
	resource->sm.smCount = multiprocessors;
	return CUDA_SUCCESS;
}

static CUresult
split(CUdevResource *groups, unsigned int *count, const CUdevResource *whole,
      CUdevResource *remaining, unsigned int flags, unsigned int size)
{
	/* 132 multiprocessors of this kind give 15 groups of 8. */
	unsigned int most = flags ? whole->sm.smCount / 2 : (whole->sm.smCount - 4) / 8 * 15 / 16;

	if (!most)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	size = flags ? 2 : 8;
	if (*count > most)
		*count = most;
	for (unsigned int i = 0; i < *count; i++) {
		memset(&groups[i], 0, sizeof(groups[i]));
		groups[i].type = CU_DEV_RESOURCE_TYPE_SM;
		groups[i].sm.smCount = size;
		groups[i]._internal_padding[0] = (unsigned char)i;
	}
	return CUDA_SUCCESS;
}

static CUresult
generate(CUdevResourceDesc *desc, CUdevResource *resources, unsigned int count)
{
	struct green *green = calloc(1, sizeof(*green));

	for (unsigned int i = 0; i < count; i++)
		green->has[resources[i]._internal_padding[0]] = true;
	*desc = (CUdevResourceDesc)green;
	return CUDA_SUCCESS;
}

static CUresult
create(CUgreenCtx *ctx, CUdevResourceDesc desc, CUdevice device, unsigned int flags)
{
	assert_int_equal(flags, CU_GREEN_CTX_DEFAULT_STREAM);
	if (create_result != CUDA_SUCCESS) {
		free(desc);
		return create_result;
	}
	*ctx = (CUgreenCtx)desc;
	greens++;
	contexts_made++;
	return CUDA_SUCCESS;
}

static CUresult
destroy(CUgreenCtx ctx)
{
	assert_int_equal(((struct green *)ctx)->streams, 0);
	free(ctx);
	greens--;
	return CUDA_SUCCESS;
}

static CUresult
create_green_stream(CUstream *stream, CUgreenCtx ctx, unsigned int flags, int priority)
{
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	((struct green *)ctx)->streams++;
	*stream = (CUstream)ctx;
	return CUDA_SUCCESS;
}

static CUresult
green_resource(CUgreenCtx ctx, CUdevResource *resource, CUdevResourceType type)
{
	const struct green *green = (struct green *)ctx;

	memset(resource, 0, sizeof(*resource));
	resource->type = type;
	for (int i = 0; i < GROUPS_MAX; i++)
		resource->sm.smCount += green->has[i] * 2;
	return CUDA_SUCCESS;
}

static CUresult
create_plain_stream(CUstream *stream, unsigned int flags, int priority)
{
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	*stream = NULL;
	return CUDA_SUCCESS;
}

static int
setup(void **state)
{
	gpd_driver.cuDeviceGetDevResource = device_resource;
	gpd_driver.cuDevSmResourceSplitByCount = split;
	gpd_driver.cuGreenCtxGetDevResource = green_resource;
	gpd_driver.cuDevResourceGenerateDesc = generate;
	gpd_driver.cuGreenCtxCreate = create;
	gpd_driver.cuGreenCtxDestroy = destroy;
	gpd_driver.cuGreenCtxStreamCreate = create_green_stream;
	gpd_driver.cuStreamCreateWithPriority = create_plain_stream;
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	gpd_devices.all[0].multiprocessors = (int)multiprocessors;
	contexts_made = 0;
	create_result = CUDA_SUCCESS;
	gpd_partition_start(0);
	return 0;
}

static int
teardown(void **state)
{
	gpd_partition_stop(0);
	return greens == 0 ? 0 : -1;
}

/* The groups that new streams of the session are confined to. */
struct groups {
	bool has[GROUPS_MAX];
	unsigned int count;
};

/* What a part has; a part is made when its first stream is. */
static struct groups
groups_of_part(struct gpd_partition *part, CUresult expected)
{
	struct groups groups = { .count = 0 };
	CUstream stream;

	assert_int_equal(gpd_partition_stream(part, 0, NULL, &stream), expected);
	if (expected != CUDA_SUCCESS)
		return groups;
	for (int i = 0; i < GROUPS_MAX; i++)
		groups.count += groups.has[i] = ((struct green *)stream)->has[i];
	((struct green *)stream)->streams--;
	return groups;
}

static struct groups
groups_of(struct gpd_shares *shares)
{
	struct gpd_partition *partition = gpd_partition_current(shares, 0);
	struct groups groups;

	assert_non_null(partition);
	groups = groups_of_part(partition, CUDA_SUCCESS);
	gpd_partition_unref(partition);
	return groups;
}

static unsigned int
overlap(struct gpd_shares *a, struct gpd_shares *b)
{
	struct groups first = groups_of(a), second = groups_of(b);
	unsigned int count = 0;

	for (int i = 0; i < GROUPS_MAX; i++)
		count += first.has[i] && second.has[i];
	return count;
}

static uint32_t
assign(struct gpd_shares *shares, uint32_t wanted)
{
	return gpd_partition_assign(shares, 0, 0, wanted);
}

static void
forget(struct gpd_shares *shares, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		gpd_partition_unassign(&shares[i]);
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(whole_device_needs_no_partition)
{
	struct gpd_shares shares = { 0 };
	CUstream stream = (CUstream)&shares;

	assert_int_equal(assign(&shares, 0), 0);
	assert_null(gpd_partition_current(&shares, 0));
	assert_int_equal(assign(&shares, ALL), 0);
	assert_int_equal(assign(&shares, 1000), 0);
	assert_null(gpd_partition_current(&shares, 0));
	assert_int_equal(gpd_partition_stream(NULL, 0, NULL, &stream), CUDA_SUCCESS);
	assert_null(stream);
	assert_int_equal(atomic_load(&shares.changed), 0);
	gpd_partition_unassign(&shares);
	assert_int_equal(contexts_made, 0);
}

TEST(share_is_rounded_down_to_whole_groups)
{
	struct gpd_shares shares = { 0 };

	assert_int_equal(assign(&shares, 33), 32);
	assert_int_equal(groups_of(&shares).count, 16);
	assert_int_equal(assign(&shares, 1), 2);
	assert_int_equal(assign(&shares, 131), 130);
	forget(&shares, 1);
	gpd_partition_set_granularity(0, 8);
	assert_int_equal(assign(&shares, 33), 32);
	assert_int_equal(assign(&shares, 7), 8);
	/* The rest of the split belongs to no partition. */
	assert_int_equal(assign(&shares, 131), 120);
	forget(&shares, 1);
}

TEST(groups_change_their_size_when_nobody_has_one)
{
	struct gpd_shares shares[2] = { { 0 } };

	assert_int_equal(assign(&shares[0], 30), 30);
	gpd_partition_set_granularity(0, 8);
	assert_int_equal(assign(&shares[1], 30), 30);
	assert_int_equal(overlap(&shares[0], &shares[1]), 0);
	gpd_partition_unassign(&shares[0]);
	gpd_partition_set_granularity(0, 8);
	assert_int_equal(assign(&shares[0], 30), 30);
	forget(shares, 2);
	gpd_partition_set_granularity(0, 8);
	assert_int_equal(assign(&shares[0], 30), 24);
	forget(shares, 1);
	/* What cannot be leaves it as it was. */
	multiprocessors = 7;
	gpd_devices.all[0].multiprocessors = 7;
	gpd_partition_stop(0);
	gpd_partition_start(0);
	gpd_partition_set_granularity(0, 8);
	assert_int_equal(assign(&shares[0], 5), 4);
	forget(shares, 1);
	multiprocessors = ALL;
}

TEST(shares_are_disjoint_as_long_as_they_last)
{
	struct gpd_shares shares[6] = { { 0 } };

	for (int i = 0; i < 4; i++)
		assert_int_equal(assign(&shares[i], 33), 32);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			assert_int_equal(overlap(&shares[i], &shares[k]), 0);
	/* Two groups are free; the others are in use. */
	assert_int_equal(assign(&shares[4], 8), 8);
	for (unsigned int i = 0, all = 0; i < 4; i++) {
		all += overlap(&shares[4], &shares[i]);
		if (i == 3)
			assert_int_equal(all, 2);
	}
	forget(shares, 5);
}

TEST(groups_that_fewest_have_are_given_next)
{
	struct gpd_shares shares[8] = { { 0 } };
	unsigned int users[GROUPS_MAX] = { 0 };

	for (int i = 0; i < 8; i++)
		assert_int_equal(assign(&shares[i], 66), 66);
	for (int i = 0; i < 8; i++) {
		struct groups groups = groups_of(&shares[i]);

		for (int k = 0; k < GROUPS_MAX; k++)
			users[k] += groups.has[k];
	}
	for (int k = 0; k < GROUPS_MAX; k++)
		assert_int_equal(users[k], 4);
	/* Sessions with the same groups have one green context. */
	assert_int_equal(contexts_made, 2);
	forget(shares, 8);
}

TEST(freed_groups_go_to_those_that_share)
{
	struct gpd_shares shares[3] = { { 0 } };

	for (int i = 0; i < 3; i++)
		assert_int_equal(assign(&shares[i], 66), 66);
	assert_int_equal(overlap(&shares[0], &shares[2]) + overlap(&shares[1], &shares[2]), 33);
	for (int i = 0; i < 3; i++)
		atomic_store(&shares[i].changed, 0);
	/* Whichever goes, the other two must come out disjoint. */
	gpd_partition_unassign(&shares[1]);
	assert_int_equal(overlap(&shares[0], &shares[2]), 0);
	assert_int_equal(assign(&shares[1], 66), 66);
	gpd_partition_unassign(&shares[0]);
	assert_int_equal(overlap(&shares[1], &shares[2]), 0);
	assert_int_equal(atomic_load(&shares[1].changed) | atomic_load(&shares[2].changed), 1);
	forget(&shares[1], 2);
}

TEST(changed_share_does_not_run_into_the_neighbour)
{
	struct gpd_shares shares[2] = { { 0 } };

	assert_int_equal(assign(&shares[0], 66), 66);
	assert_int_equal(assign(&shares[1], 66), 66);
	atomic_store(&shares[0].changed, 0);
	assert_int_equal(assign(&shares[0], 32), 32);
	assert_int_equal(overlap(&shares[0], &shares[1]), 0);
	assert_int_equal(atomic_load(&shares[0].changed), 1);
	assert_int_equal(assign(&shares[0], 66), 66);
	assert_int_equal(overlap(&shares[0], &shares[1]), 0);
	/* Setting the same share again changes nothing. */
	atomic_store(&shares[0].changed, 0);
	assert_int_equal(assign(&shares[0], 67), 66);
	assert_int_equal(atomic_load(&shares[0].changed), 0);
	assert_int_equal(assign(&shares[0], 0), 0);
	assert_int_equal(atomic_load(&shares[0].changed), 1);
	forget(shares, 2);
}

TEST(idle_green_contexts_are_used_again)
{
	struct gpd_shares shares[2] = { { 0 } };

	for (int i = 0; i < 10; i++) {
		assert_int_equal(assign(&shares[0], 32), 32);
		assert_int_equal(groups_of(&shares[0]).count, 16);
		gpd_partition_unassign(&shares[0]);
	}
	assert_int_equal(contexts_made, 1);
	/* Also one that would not have been the first choice. */
	assert_int_equal(assign(&shares[0], 16), 16);
	(void)groups_of(&shares[0]);
	assert_int_equal(assign(&shares[1], 32), 32);
	assert_int_equal(overlap(&shares[0], &shares[1]), 0);
	gpd_partition_unassign(&shares[0]);
	assert_int_equal(assign(&shares[0], 32), 32);
	assert_int_equal(overlap(&shares[0], &shares[1]), 0);
	assert_in_range(contexts_made, 2, 4);
	forget(shares, 2);
}

TEST(not_all_idle_green_contexts_are_kept)
{
	struct gpd_shares shares[40] = { { 0 } };

	for (unsigned int i = 0; i < 40; i++) {
		assert_int_equal(assign(&shares[i], 2 + 2 * i), 2 + 2 * i);
		(void)groups_of(&shares[i]);
	}
	assert_int_equal(greens, 40);
	forget(shares, 40);
	assert_in_range(greens, 1, 16);
}

TEST(streams_keep_their_partition)
{
	struct gpd_shares shares = { 0 };
	struct gpd_partition *partition;
	CUstream stream;

	assert_int_equal(assign(&shares, 32), 32);
	partition = gpd_partition_current(&shares, 0);
	assert_int_equal(gpd_partition_stream(partition, 0, NULL, &stream), CUDA_SUCCESS);
	gpd_partition_unassign(&shares);
	assert_int_equal(greens, 1);
	((struct green *)stream)->streams--;
	gpd_partition_unref(partition);
}

TEST(sessions_of_a_tenant_share_what_it_has)
{
	struct gpd_shares shares[5] = { { 0 } };

	for (int i = 0; i < 4; i++) {
		shares[i].tenant = 7;
		assert_int_equal(gpd_partition_assign(&shares[i], 0, 66, 0), 66);
	}
	assert_int_equal(overlap(&shares[0], &shares[3]), 33);
	/* So the other half is free. */
	assert_int_equal(assign(&shares[4], 66), 66);
	assert_int_equal(overlap(&shares[4], &shares[0]), 0);
	forget(shares, 5);
}

TEST(sessions_divide_their_tenants_share)
{
	struct gpd_shares shares[3] = { { 0 } };

	for (int i = 0; i < 3; i++)
		shares[i].tenant = i < 2 ? 7 : 8;
	assert_int_equal(gpd_partition_assign(&shares[0], 0, 32, 16), 16);
	assert_int_equal(gpd_partition_assign(&shares[2], 0, 100, 0), 100);
	assert_int_equal(gpd_partition_assign(&shares[1], 0, 32, 16), 16);
	assert_int_equal(overlap(&shares[0], &shares[1]), 0);
	assert_int_equal(overlap(&shares[0], &shares[2]), 0);
	assert_int_equal(overlap(&shares[1], &shares[2]), 0);
	/* More than the tenant has is all that it has. */
	assert_int_equal(gpd_partition_assign(&shares[1], 0, 32, 64), 32);
	assert_int_equal(overlap(&shares[0], &shares[1]), 8);
	assert_int_equal(overlap(&shares[1], &shares[2]), 0);
	forget(shares, 3);
}

TEST(tenants_share_changes_for_all_its_sessions)
{
	struct gpd_shares shares[3] = { { 0 } };

	for (int i = 0; i < 3; i++) {
		shares[i].tenant = i < 2 ? 7 : 8;
		assert_int_equal(gpd_partition_assign(&shares[i], 0, 66, 0), 66);
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(gpd_partition_assign(&shares[i], 0, 32, 0), 32);
	assert_int_equal(overlap(&shares[0], &shares[1]), 16);
	assert_int_equal(overlap(&shares[0], &shares[2]), 0);
	assert_int_equal(gpd_partition_assign(&shares[2], 0, 100, 0), 100);
	assert_int_equal(overlap(&shares[0], &shares[2]), 0);
	forget(shares, 3);
}

TEST(green_context_that_cannot_be_made_is_said)
{
	struct gpd_shares shares = { 0 };
	struct gpd_partition *partition;
	CUstream stream;

	assert_int_equal(assign(&shares, 32), 32);
	partition = gpd_partition_current(&shares, 0);
	create_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(gpd_partition_stream(partition, 0, NULL, &stream),
			 CUDA_ERROR_OUT_OF_MEMORY);
	create_result = CUDA_SUCCESS;
	assert_int_equal(gpd_partition_stream(partition, 0, NULL, &stream), CUDA_SUCCESS);
	((struct green *)stream)->streams--;
	gpd_partition_unref(partition);
	gpd_partition_unassign(&shares);
}

TEST(old_driver_gives_everybody_the_device)
{
	struct gpd_shares shares = { 0 };

	gpd_partition_stop(0);
	gpd_driver.cuGreenCtxCreate = NULL;
	gpd_partition_start(0);
	assert_int_equal(assign(&shares, 32), 0);
	assert_null(gpd_partition_current(&shares, 0));
	assert_int_equal(atomic_load(&shares.changed), 0);
	gpd_partition_unassign(&shares);
}

TEST(many_sessions_come_and_go)
{
	static struct gpd_shares shares[64];
	unsigned int users[GROUPS_MAX], seed = 1;

	memset(shares, 0, sizeof(shares));
	for (int round = 0; round < 2000; round++) {
		struct gpd_shares *one = &shares[rand_r(&seed) % 64];

		if (rand_r(&seed) % 2)
			(void)assign(one, (uint32_t)rand_r(&seed) % 70);
		else
			gpd_partition_unassign(one);
	}
	memset(users, 0, sizeof(users));
	for (int i = 0; i < 64; i++) {
		struct gpd_partition *partition = gpd_partition_current(&shares[i], 0);
		struct groups groups = { .count = 0 };

		if (!partition)
			continue;
		gpd_partition_unref(partition);
		groups = groups_of(&shares[i]);
		for (int k = 0; k < GROUPS_MAX; k++)
			users[k] += groups.has[k];
	}
	/* Everybody has moved to where it is least crowded. */
	for (int k = 1; k < GROUPS_MAX; k++)
		assert_in_range(users[k], users[0] > 1 ? users[0] - 2 : 0, users[0] + 2);
	forget(shares, 64);
}

TEST(parts_are_what_is_picked_of_a_split)
{
	const struct gpd_split split = { .least = 8, .groups = 4, .picks = { 0x6 } };
	struct gpd_partition *part = gpd_partition_part(0, NULL, &split, false);
	struct groups groups = groups_of_part(part, CUDA_SUCCESS);

	assert_int_equal(groups.count, 2);
	assert_true(groups.has[1] && groups.has[2]);
	assert_true(gpd_partition_has_base(part, NULL));
	assert_int_equal(greens, 1);
	gpd_partition_unref(part);
	assert_int_equal(greens, 0);
}

TEST(part_of_a_share_holds_it)
{
	const struct gpd_split split = { 0 };
	struct gpd_shares shares = { 0 };
	struct gpd_partition *base, *part;

	assert_int_equal(assign(&shares, 8), 8);
	base = gpd_partition_current(&shares, 0);
	part = gpd_partition_part(0, base, &split, false);
	assert_true(gpd_partition_has_base(part, base));
	assert_false(gpd_partition_has_base(part, NULL));
	assert_false(gpd_partition_has_base(base, NULL));
	assert_int_equal(groups_of_part(part, CUDA_SUCCESS).count, 1);
	assert_int_equal(greens, 2);
	gpd_partition_unassign(&shares);
	gpd_partition_unref(part);
	assert_int_equal(greens, 1); /* the share's partition is cached for a while */
}

TEST(split_that_cannot_be_had_is_refused_or_all)
{
	const struct gpd_split split = { .least = 8, .groups = 16, .picks = { 1u << 15 } };
	struct gpd_partition *part = gpd_partition_part(0, NULL, &split, false);

	(void)groups_of_part(part, CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	gpd_partition_unref(part);
	part = gpd_partition_part(0, NULL, &split, true);
	assert_int_equal(groups_of_part(part, CUDA_SUCCESS).count, 1);
	gpd_partition_unref(part);
}

UNIT_TEST_MAIN(NULL, NULL)
