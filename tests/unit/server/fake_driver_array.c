/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, textures and surfaces of the fake CUDA driver of fake_session.h. */

/* assert() checks the tested code, so it is active in every build. */
#undef NDEBUG
#include "protocol/array_geometry.h"
#include "tests/unit/server/fake_driver.h"
#include "tests/unit/server/fake_session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Atomic int fake_driver_arrays;
_Atomic int fake_driver_textures;

/* An array; its rows are contiguous. */
struct array {
	size_t pitch, height;
	uint8_t memory[];
};

struct mipmap {
	unsigned int count;
	struct array *levels[GP_ARRAY_LEVELS_MAX];
};

/* A new array contains the data of an earlier use. */
static struct array *
make_array(const CUDA_ARRAY3D_DESCRIPTOR *described, unsigned int level)
{
	const struct gp_array_shape shape = { described->Width,
					      described->Height,
					      described->Depth,
					      (uint32_t)described->Format,
					      described->NumChannels,
					      described->Flags,
					      0 };
	struct gp_array_extent extent = gp_array_get_level_extent(&shape, level);
	size_t size = extent.width * extent.height * extent.depth;
	struct array *array = malloc(sizeof(*array) + size);

	assert(array);
	*array = (struct array){ extent.width, extent.height };
	memset(array->memory, 0xee, size);
	return array;
}

static CUresult
array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *described)
{
	CUresult result = fake_driver_called("cuArray3DCreate %zu x %zu x %zu", described->Width,
					     described->Height, described->Depth);

	if (result != CUDA_SUCCESS)
		return result;
	fake_driver_arrays++;
	*array = (CUarray)make_array(described, 0);
	return CUDA_SUCCESS;
}

static CUresult
array_destroy(CUarray array)
{
	fake_driver_arrays--;
	free(array);
	return fake_driver_called("cuArrayDestroy");
}

static CUresult
mipmap_create(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *described,
	      unsigned int levels)
{
	CUresult result = fake_driver_called("cuMipmappedArrayCreate %u", levels);
	struct mipmap *mipmap;

	if (result != CUDA_SUCCESS)
		return result;
	mipmap = calloc(1, sizeof(*mipmap));
	assert(mipmap && levels <= GP_ARRAY_LEVELS_MAX);
	mipmap->count = levels;
	for (unsigned int i = 0; i < levels; i++)
		mipmap->levels[i] = make_array(described, i);
	fake_driver_arrays++;
	*handle = (CUmipmappedArray)mipmap;
	return CUDA_SUCCESS;
}

static CUresult
mipmap_destroy(CUmipmappedArray handle)
{
	struct mipmap *mipmap = (struct mipmap *)handle;

	for (unsigned int i = 0; i < mipmap->count; i++)
		free(mipmap->levels[i]);
	free(mipmap);
	fake_driver_arrays--;
	return fake_driver_called("cuMipmappedArrayDestroy");
}

static CUresult
mipmap_level(CUarray *level, CUmipmappedArray handle, unsigned int number)
{
	*level = (CUarray)((struct mipmap *)handle)->levels[number];
	return CUDA_SUCCESS;
}

static CUresult
texture_create(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
	       const CUDA_TEXTURE_DESC *description, const CUDA_RESOURCE_VIEW_DESC *view)
{
	*object = 0x1000 + (unsigned long long)++fake_driver_textures;
	return fake_driver_called("cuTexObjectCreate %d flags %u%s", (int)resource->resType,
				  description->flags, view ? " view" : "");
}

static CUresult
texture_destroy(CUtexObject object)
{
	fake_driver_textures--;
	return fake_driver_called("cuTexObjectDestroy");
}

static CUresult
surface_create(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
	*object = 0x2000 + (unsigned long long)++fake_driver_textures;
	return fake_driver_called("cuSurfObjectCreate");
}

static CUresult
surface_destroy(CUsurfObject object)
{
	fake_driver_textures--;
	return fake_driver_called("cuSurfObjectDestroy");
}

static CUresult
copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	const struct array *from = (const struct array *)copy->srcArray;
	struct array *to = (struct array *)copy->dstArray;
	bool out = copy->srcMemoryType == CU_MEMORYTYPE_ARRAY;
	bool in = copy->dstMemoryType == CU_MEMORYTYPE_ARRAY;
	const uint8_t *src = copy->srcMemoryType == CU_MEMORYTYPE_HOST
				     ? copy->srcHost
				     : (const uint8_t *)(uintptr_t)copy->srcDevice;
	uint8_t *dst = copy->dstMemoryType == CU_MEMORYTYPE_HOST
			       ? copy->dstHost
			       : (uint8_t *)(uintptr_t)copy->dstDevice;
	size_t src_pitch = out ? from->pitch : copy->srcPitch;
	size_t dst_pitch = in ? to->pitch : copy->dstPitch;
	size_t src_height = out ? from->height : copy->srcHeight;
	size_t dst_height = in ? to->height : copy->dstHeight;

	if (out)
		src = from->memory + copy->srcXInBytes +
		      (copy->srcZ * src_height + copy->srcY) * src_pitch;
	if (in)
		dst = to->memory + copy->dstXInBytes +
		      (copy->dstZ * dst_height + copy->dstY) * dst_pitch;
	for (size_t z = 0; z < copy->Depth; z++)
		for (size_t y = 0; y < copy->Height; y++)
			memmove(dst + (z * dst_height + y) * dst_pitch,
				src + (z * src_height + y) * src_pitch, copy->WidthInBytes);
	return fake_driver_called("cuMemcpy3DAsync %zu x %zu x %zu", copy->WidthInBytes,
				  copy->Height, copy->Depth);
}

void
fake_driver_add_arrays(void)
{
	gpd_driver.cuMemcpy3DAsync_v2 = copy_3d;
	gpd_driver.cuArray3DCreate_v2 = array_create;
	gpd_driver.cuArrayDestroy = array_destroy;
	gpd_driver.cuMipmappedArrayCreate = mipmap_create;
	gpd_driver.cuMipmappedArrayDestroy = mipmap_destroy;
	gpd_driver.cuMipmappedArrayGetLevel = mipmap_level;
	gpd_driver.cuTexObjectCreate = texture_create;
	gpd_driver.cuTexObjectDestroy = texture_destroy;
	gpd_driver.cuSurfObjectCreate = surface_create;
	gpd_driver.cuSurfObjectDestroy = surface_destroy;
}
