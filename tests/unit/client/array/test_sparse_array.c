/* SPDX-License-Identifier: Apache-2.0 */
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>

#define ORDINAL 3 /* of the fake's device */
#define TILE 65536

static CUDA_ARRAY3D_DESCRIPTOR
floats(unsigned int flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){ .Width = 256,
					  .Height = 256,
					  .Format = CU_AD_FORMAT_FLOAT,
					  .NumChannels = 1,
					  .Flags = flags };
}

static CUarray
create(void)
{
	const CUDA_ARRAY3D_DESCRIPTOR described = floats(CUDA_ARRAY3D_SPARSE);
	CUarray array;

	CU(gpc_cuArray3DCreate_v2(&array, &described));
	return array;
}

static CUresult
make_memory(unsigned short usage, CUmemGenericAllocationHandle *memory)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.allocFlags.usage = usage,
	};

	return gpc_cuMemCreate(memory, FAKE_WIRE_GRANULE, &prop, 0);
}

static CUarrayMapInfo
whole(CUarray array, CUmemGenericAllocationHandle memory)
{
	return (CUarrayMapInfo){
		.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.resource.array = array,
		.subresource.sparseLevel = { .extentWidth = 256,
					     .extentHeight = 256,
					     .extentDepth = 1 },
		.memOperationType =
			memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.memHandle.memHandle = memory,
		.deviceBitMask = 1U << ORDINAL,
	};
}

FAKE_WIRE_TEST(a_device_without_has_none)
{
	const CUDA_ARRAY3D_DESCRIPTOR described = floats(CUDA_ARRAY3D_SPARSE);
	CUmemGenericAllocationHandle memory;
	CUarray array;

	assert_int_equal(gpc_cuArray3DCreate_v2(&array, &described), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(make_memory(CU_MEM_CREATE_USAGE_TILE_POOL, &memory),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fake_wire_mapped() + (uint64_t)fake_wire_arrays(), 0);
}

FAKE_WIRE_TEST(parts_go_in_few_messages)
{
	CUmemGenericAllocationHandle memory;
	CUDA_ARRAY_SPARSE_PROPERTIES tiles;
	CUarrayMapInfo *infos = calloc(2500, sizeof(*infos));
	CUarray array;

	fake.sparse = true;
	array = create();
	CU(make_memory(CU_MEM_CREATE_USAGE_TILE_POOL, &memory));
	CU(gpc_cuArrayGetSparseProperties(&tiles, array));
	assert_int_equal(tiles.tileExtent.width, 128);
	assert_int_equal(tiles.miptailSize, 0);
	for (int i = 0; i < 2500; i++)
		infos[i] = whole(array, memory);
	CU(gpc_cuMemMapArrayAsync(infos, 2500, NULL));
	assert_int_equal(fake.parts, 2500);
	assert_int_equal(fake.part_calls, 3);
	infos[0] = whole(array, 0);
	CU(gpc_cuMemMapArrayAsync(infos, 1, NULL));
	/* One that is wrong keeps all of them here. */
	infos[2499].flags = 1;
	INVALID(gpc_cuMemMapArrayAsync(infos, 2500, NULL));
	assert_int_equal(fake.part_calls, 4);
	/* Nothing of them is kept. */
	CU(gpc_cuMemRelease(memory));
	assert_int_equal(fake.mapped, 0);
	CU(gpc_cuArrayDestroy(array));
	assert_int_equal(fake_wire_arrays(), 0);
	free(infos);
}

FAKE_WIRE_TEST(what_the_array_does_not_have_does_not_travel)
{
	CUmemGenericAllocationHandle memory, plain;
	CUarrayMapInfo good, bad[9];
	CUarray array, dense;
	CUDA_ARRAY3D_DESCRIPTOR described = floats(0);
	CUDA_ARRAY_SPARSE_PROPERTIES tiles;
	CUdeviceptr base;

	fake.sparse = true;
	array = create();
	CU(gpc_cuArray3DCreate_v2(&dense, &described));
	CU(make_memory(CU_MEM_CREATE_USAGE_TILE_POOL, &memory));
	CU(make_memory(0, &plain));
	good = whole(array, memory);
	for (size_t i = 0; i < 9; i++)
		bad[i] = good;
	bad[0].subresource.sparseLevel.offsetX = 64;
	bad[1].subresource.sparseLevel.extentHeight = 257;
	bad[2].memHandle.memHandle = plain;
	bad[3].offset = FAKE_WIRE_GRANULE;
	bad[4].deviceBitMask = 1;
	bad[5].resource.array = dense;
	bad[6].memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	bad[7].subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	bad[8].reserved[1] = 1;
	for (size_t i = 0; i < 9; i++)
		INVALID(gpc_cuMemMapArrayAsync(&bad[i], 1, NULL));
	INVALID(gpc_cuMemMapArrayAsync(NULL, 1, NULL));
	INVALID(gpc_cuMemMapArrayAsync(&good, 0, NULL));
	INVALID(gpc_cuArrayGetSparseProperties(&tiles, dense));
	INVALID(gpc_cuArrayGetSparseProperties(NULL, array));
	assert_int_equal(fake.part_calls, 0);
	/* Nor is memory for tiles mapped anywhere else. */
	CU(gpc_cuMemAddressReserve(&base, FAKE_WIRE_GRANULE, 0, 0, 0));
	INVALID(gpc_cuMemMap(base, FAKE_WIRE_GRANULE, 0, memory, 0));
	CU(gpc_cuMemAddressFree(base, FAKE_WIRE_GRANULE));
	CU(gpc_cuMemRelease(memory));
	CU(gpc_cuMemRelease(plain));
	CU(gpc_cuArrayDestroy(array));
	CU(gpc_cuArrayDestroy(dense));
}

FAKE_WIRE_TEST(small_levels_are_the_mip_tail)
{
	const CUDA_ARRAY3D_DESCRIPTOR described = floats(CUDA_ARRAY3D_SPARSE);
	CUmemGenericAllocationHandle memory;
	CUDA_ARRAY_SPARSE_PROPERTIES tiles;
	CUmipmappedArray mipmap;
	CUarrayMapInfo info;
	CUarray level;

	fake.sparse = true;
	CU(gpc_cuMipmappedArrayCreate(&mipmap, &described, 5));
	CU(make_memory(CU_MEM_CREATE_USAGE_TILE_POOL, &memory));
	CU(gpc_cuMipmappedArrayGetSparseProperties(&tiles, mipmap));
	assert_int_equal(tiles.miptailFirstLevel, 2);
	CU(gpc_cuMipmappedArrayGetLevel(&level, mipmap, 0));
	INVALID(gpc_cuArrayGetSparseProperties(&tiles, level));
	info = whole(level, memory);
	INVALID(gpc_cuMemMapArrayAsync(&info, 1, NULL));
	info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	info.resource.mipmap = mipmap;
	CU(gpc_cuMemMapArrayAsync(&info, 1, NULL));
	info.subresource.sparseLevel.level = 2;
	INVALID(gpc_cuMemMapArrayAsync(&info, 1, NULL));
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	memset(&info.subresource, 0, sizeof(info.subresource));
	info.subresource.miptail.size = TILE;
	CU(gpc_cuMemMapArrayAsync(&info, 1, NULL));
	info.subresource.miptail.size = 2 * TILE;
	INVALID(gpc_cuMemMapArrayAsync(&info, 1, NULL));
	assert_int_equal(fake.part_calls, 2);
	CU(gpc_cuMipmappedArrayDestroy(mipmap));
	CU(gpc_cuMemRelease(memory));
}

UNIT_TEST_MAIN(NULL, NULL)
