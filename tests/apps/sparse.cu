/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse arrays: the program maps memory to their tiles, also the same memory to several tiles. */
#include "physical_app.h"

static cudaStream_t stream;
static CUmemAllocationProp prop;
static size_t granule;

static void
prepare()
{
	int supported;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	DCHECK(DRIVER(cuDeviceGetAttribute)(&supported,
					    CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0));
	app_skip_unless_supported(supported ? cudaSuccess : cudaErrorNotSupported, "sparse arrays");
	prop = app_physical_properties();
	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	granule = app_physical_granularity(prop);
}

static CUmemGenericAllocationHandle
make_memory(size_t size)
{
	return app_physical_create(prop, (size + granule - 1) / granule * granule);
}

static CUDA_ARRAY3D_DESCRIPTOR
describe(size_t width, size_t height, size_t depth, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR described = {};

	described.Width = width;
	described.Height = height;
	described.Depth = depth;
	described.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	described.NumChannels = 1;
	described.Flags = flags | CUDA_ARRAY3D_SPARSE;
	return described;
}

static CUarray
make_array(size_t width, size_t height, size_t depth, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR described = describe(width, height, depth, flags);
	CUarray array;

	DCHECK(DRIVER(cuArray3DCreate)(&array, &described));
	return array;
}

/* Returns the tile size of arrays with this depth and flags. */
static CUDA_ARRAY_SPARSE_PROPERTIES
get_tiles(size_t depth, unsigned flags)
{
	CUDA_ARRAY_SPARSE_PROPERTIES properties;
	CUarray array = make_array(1024, 1024, depth, flags);

	DCHECK(DRIVER(cuArrayGetSparseProperties)(&properties, array));
	DCHECK(DRIVER(cuArrayDestroy)(array));
	REQUIRE(properties.tileExtent.width && properties.tileExtent.height &&
		properties.tileExtent.depth);
	return properties;
}

static size_t
tile_size(const CUDA_ARRAY_SPARSE_PROPERTIES &tiles)
{
	return sizeof(unsigned) * tiles.tileExtent.width * tiles.tileExtent.height *
	       tiles.tileExtent.depth;
}

/* Of a level, or of an array (level 0). */
struct part {
	unsigned level, layer, x, y, width, height, depth;
};

static CUarrayMapInfo
map_info(CUarray array, const part &of, CUmemGenericAllocationHandle memory, size_t offset)
{
	CUarrayMapInfo info = {};

	info.resourceType = CU_RESOURCE_TYPE_ARRAY;
	info.resource.array = array;
	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info.subresource.sparseLevel.level = of.level;
	info.subresource.sparseLevel.layer = of.layer;
	info.subresource.sparseLevel.offsetX = of.x;
	info.subresource.sparseLevel.offsetY = of.y;
	info.subresource.sparseLevel.extentWidth = of.width;
	info.subresource.sparseLevel.extentHeight = of.height;
	info.subresource.sparseLevel.extentDepth = of.depth;
	info.memOperationType = memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
	info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	info.memHandle.memHandle = memory;
	info.offset = offset;
	info.deviceBitMask = 1;
	return info;
}

static void
map(CUarrayMapInfo info)
{
	DCHECK(DRIVER(cuMemMapArrayAsync)(&info, 1, stream));
}

static CUDA_MEMCPY3D
make_copy(CUarray array, size_t z, size_t width, size_t height, size_t depth)
{
	CUDA_MEMCPY3D copy = {};

	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.dstZ = z;
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcPitch = copy.WidthInBytes = width * sizeof(unsigned);
	copy.srcHeight = copy.Height = height;
	copy.Depth = depth;
	return copy;
}

static void
upload(CUarray array, size_t z, size_t width, size_t height, size_t depth, unsigned first)
{
	std::vector<unsigned> host(width * height * depth);
	CUDA_MEMCPY3D copy = make_copy(array, z, width, height, depth);

	for (size_t i = 0; i < host.size(); i++)
		host[i] = first + (unsigned)i;
	copy.srcHost = host.data();
	DCHECK(DRIVER(cuMemcpy3DAsync)(&copy, stream));
	CHECK(cudaStreamSynchronize(stream));
}

static std::vector<unsigned>
download(CUarray array, size_t z, size_t width, size_t height, size_t depth)
{
	std::vector<unsigned> host(width * height * depth);
	CUDA_MEMCPY3D copy = {};

	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.srcZ = z;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = host.data();
	copy.dstPitch = copy.WidthInBytes = width * sizeof(unsigned);
	copy.dstHeight = copy.Height = height;
	copy.Depth = depth;
	DCHECK(DRIVER(cuMemcpy3DAsync)(&copy, stream));
	CHECK(cudaStreamSynchronize(stream));
	return host;
}

static void
expect(CUarray array, size_t z, size_t width, size_t height, size_t depth, unsigned first)
{
	std::vector<unsigned> host = download(array, z, width, height, depth);

	for (size_t i = 0; i < host.size(); i++)
		REQUIRE(host[i] == first + (unsigned)i);
}

/* Counts the elements that are not first, first + 1, ... */
static __global__ void
count_wrong(cudaTextureObject_t texture, int width, int height, unsigned first, unsigned *wrong)
{
	for (int y = blockIdx.x; y < height; y += gridDim.x) {
		for (int x = threadIdx.x; x < width; x += blockDim.x) {
			if (tex2D<unsigned>(texture, (float)x, (float)y) != first + y * width + x)
				atomicAdd(wrong, 1);
		}
	}
}

static void
check_texture(CUarray array, size_t width, size_t height, unsigned first)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;
	unsigned *wrong = app_malloc<unsigned>(1), count;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = (cudaArray_t)array;
	CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	CHECK(cudaDeviceSynchronize());
	count_wrong<<<4, 256, 0, stream>>>(texture, (int)width, (int)height, first, wrong);
	CHECK(cudaGetLastError());
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost));
	REQUIRE(count == 0);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFree(wrong));
}

/* The contents of a tile are visible through every array to which its memory is mapped. */
static void
two_dimensions()
{
	CUDA_ARRAY_SPARSE_PROPERTIES tiles = get_tiles(0, 0);
	const unsigned w = tiles.tileExtent.width, h = tiles.tileExtent.height;
	CUarray array = make_array(2 * w, 2 * h, 0, 0);
	CUarray other = make_array(w, h, 0, 0);
	CUmemGenericAllocationHandle memory = make_memory(4 * tile_size(tiles));
	std::vector<unsigned> seen;

	map(map_info(array, { 0, 0, 0, 0, 2 * w, 2 * h, 1 }, memory, 0));
	upload(array, 0, 2 * w, 2 * h, 1, 1000);
	expect(array, 0, 2 * w, 2 * h, 1, 1000);
	check_texture(array, 2 * w, 2 * h, 1000);
	upload(array, 0, 2 * w, 2 * h, 1, 1007);
	check_texture(array, 2 * w, 2 * h, 1007);

	map(map_info(other, { 0, 0, 0, 0, w, h, 1 }, memory, 0));
	seen = download(other, 0, w, h, 1);
	for (unsigned y = 0; y < h; y++) {
		for (unsigned x = 0; x < w; x++)
			REQUIRE(seen[y * w + x] == 1007 + y * 2 * w + x);
	}
	/* From here on another tile of the first array has the same memory. */
	map(map_info(array, { 0, 0, w, h, w, h, 1 }, memory, 0));
	upload(other, 0, w, h, 1, 500);
	seen = download(array, 0, 2 * w, 2 * h, 1);
	REQUIRE(seen[0] == 500 && seen[h * 2 * w + w] == 500 && seen[w] == 1007 + w);

	/* The memory stays allocated as long as an array uses it. */
	DCHECK(DRIVER(cuMemRelease)(memory));
	expect(other, 0, w, h, 1, 500);
	map(map_info(other, { 0, 0, 0, 0, w, h, 1 }, 0, 0));
	seen = download(other, 0, w, h, 1);
	REQUIRE(seen == std::vector<unsigned>(w * h));
	DCHECK(DRIVER(cuArrayDestroy)(other));
	DCHECK(DRIVER(cuArrayDestroy)(array));
	printf("two dimensions\n");
}

static void
layers()
{
	CUDA_ARRAY_SPARSE_PROPERTIES tiles = get_tiles(3, CUDA_ARRAY3D_LAYERED);
	const unsigned w = 2 * tiles.tileExtent.width, h = tiles.tileExtent.height;
	CUarray array = make_array(w, h, 3, CUDA_ARRAY3D_LAYERED);
	CUmemGenericAllocationHandle memory = make_memory(6 * tile_size(tiles));
	CUarrayMapInfo infos[3];

	for (unsigned i = 0; i < 3; i++)
		infos[i] = map_info(array, { 0, i, 0, 0, w, h, 1 }, memory,
				    2 * (2 - i) * tile_size(tiles));
	DCHECK(DRIVER(cuMemMapArrayAsync)(infos, 3, stream));
	upload(array, 0, w, h, 3, 100);
	expect(array, 1, w, h, 2, 100 + w * h);
	DCHECK(DRIVER(cuArrayDestroy)(array));
	DCHECK(DRIVER(cuMemRelease)(memory));
	printf("layers\n");
}

static void
three_dimensions()
{
	CUDA_ARRAY_SPARSE_PROPERTIES tiles = get_tiles(64, 0);
	const unsigned w = tiles.tileExtent.width, h = 2 * tiles.tileExtent.height;
	const unsigned d = 64;
	CUarray array = make_array(w, h, d, 0);
	CUmemGenericAllocationHandle memory =
		make_memory(2 * d / tiles.tileExtent.depth * tile_size(tiles));

	map(map_info(array, { 0, 0, 0, 0, w, h, d }, memory, 0));
	upload(array, 0, w, h, d, 30);
	expect(array, 0, w, h, d, 30);
	DCHECK(DRIVER(cuArrayDestroy)(array));
	DCHECK(DRIVER(cuMemRelease)(memory));
	printf("three dimensions\n");
}

static CUarrayMapInfo
tail_info(CUarray array, size_t size, CUmemGenericAllocationHandle memory, size_t offset)
{
	CUarrayMapInfo info = map_info(array, {}, memory, offset);

	info.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
	memset(&info.subresource, 0, sizeof(info.subresource));
	info.subresource.miptail.size = size;
	return info;
}

/* An array with fewer slices than a tile is one piece of memory. */
static void
shallow()
{
	CUDA_ARRAY_SPARSE_PROPERTIES whole;
	CUarray array = make_array(1024, 512, 3, 0);
	CUmemGenericAllocationHandle memory;

	DCHECK(DRIVER(cuArrayGetSparseProperties)(&whole, array));
	REQUIRE(whole.miptailFirstLevel == 0 && whole.miptailSize > 0 &&
		whole.flags == CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL);
	memory = make_memory(whole.miptailSize);
	map(tail_info(array, whole.miptailSize, memory, 0));
	upload(array, 0, 1024, 512, 3, 60);
	expect(array, 0, 1024, 512, 3, 60);
	DCHECK(DRIVER(cuArrayDestroy)(array));
	DCHECK(DRIVER(cuMemRelease)(memory));
	printf("less than a tile\n");
}

static CUmipmappedArray
make_levels(size_t width, size_t height, unsigned layers, unsigned count)
{
	CUDA_ARRAY3D_DESCRIPTOR described =
		describe(width, height, layers, layers ? CUDA_ARRAY3D_LAYERED : 0);
	CUmipmappedArray mipmap;

	DCHECK(DRIVER(cuMipmappedArrayCreate)(&mipmap, &described, count));
	return mipmap;
}

static void
map_mipmap(CUmipmappedArray mipmap, CUarrayMapInfo info)
{
	info.resourceType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	info.resource.mipmap = mipmap;
	map(info);
}

/* Maps one layer of all levels. Returns the offset at which its memory ends. */
static size_t
map_levels(CUmipmappedArray mipmap, unsigned w, unsigned h, unsigned layer,
	   CUmemGenericAllocationHandle memory, size_t offset)
{
	CUDA_ARRAY_SPARSE_PROPERTIES whole;
	CUarrayMapInfo info;

	DCHECK(DRIVER(cuMipmappedArrayGetSparseProperties)(&whole, mipmap));
	for (unsigned i = 0; i < whole.miptailFirstLevel; i++) {
		const unsigned lw = w >> i, lh = h >> i ? h >> i : 1;

		map_mipmap(mipmap,
			   map_info(nullptr, { i, layer, 0, 0, lw, lh, 1 }, memory, offset));
		offset += tile_size(whole) * (lw / whole.tileExtent.width) *
			  ((lh + whole.tileExtent.height - 1) / whole.tileExtent.height);
	}
	info = tail_info(nullptr, whole.miptailSize, memory, offset);
	info.subresource.miptail.layer = layer;
	map_mipmap(mipmap, info);
	return offset + whole.miptailSize;
}

/* Levels that are larger than a tile have tiles. The others, the mip tail, are one piece of memory
 * per layer. */
static void
levels(unsigned layers, unsigned across, unsigned count)
{
	CUDA_ARRAY_SPARSE_PROPERTIES tiles = get_tiles(layers, layers ? CUDA_ARRAY3D_LAYERED : 0);
	const unsigned w = across * tiles.tileExtent.width, h = across * tiles.tileExtent.height;
	const unsigned depth = layers ? layers : 1;
	CUmipmappedArray mipmap = make_levels(w, h, layers, count);
	CUmemGenericAllocationHandle memory = make_memory(64 * tile_size(tiles));
	CUDA_ARRAY_SPARSE_PROPERTIES whole;
	CUarray level;
	size_t offset = 0;

	DCHECK(DRIVER(cuMipmappedArrayGetSparseProperties)(&whole, mipmap));
	REQUIRE(whole.tileExtent.width == tiles.tileExtent.width && whole.miptailSize > 0 &&
		whole.miptailFirstLevel > 0 && whole.miptailFirstLevel < count && !whole.flags);
	for (unsigned layer = 0; layer < depth; layer++)
		offset = map_levels(mipmap, w, h, layer, memory, offset);
	for (unsigned i = 0; i < count; i++) {
		DCHECK(DRIVER(cuMipmappedArrayGetLevel)(&level, mipmap, i));
		upload(level, 0, w >> i, h >> i ? h >> i : 1, depth, 10000 * i);
	}
	for (unsigned i = 0; i < count; i++) {
		DCHECK(DRIVER(cuMipmappedArrayGetLevel)(&level, mipmap, i));
		expect(level, 0, w >> i, h >> i ? h >> i : 1, depth, 10000 * i);
		DEXPECT(CUDA_ERROR_INVALID_VALUE,
			DRIVER(cuArrayGetSparseProperties)(&tiles, level));
	}
	DCHECK(DRIVER(cuMipmappedArrayDestroy)(mipmap));
	DCHECK(DRIVER(cuMemRelease)(memory));
	printf("levels, %u layers\n", layers);
}

static void
refuse_array(size_t height, size_t depth, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR described = describe(1024, height, depth, flags);
	CUmipmappedArray mipmap;
	CUarray array;

	DEXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArray3DCreate)(&array, &described));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMipmappedArrayCreate)(&mipmap, &described, 4));
}

static void
kinds()
{
	CUarray array = make_array(1024, 1024, 0, CUDA_ARRAY3D_TEXTURE_GATHER);

	DCHECK(DRIVER(cuArrayDestroy)(array));
	refuse_array(1024, 0, CUDA_ARRAY3D_SURFACE_LDST);
	refuse_array(1024, 64, CUDA_ARRAY3D_SURFACE_LDST);
	refuse_array(1024, 6, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_LAYERED);
	refuse_array(1024, 0, CUDA_ARRAY3D_LAYERED);
	refuse_array(1024, 6, CUDA_ARRAY3D_CUBEMAP);
	refuse_array(1024, 64, CUDA_ARRAY3D_TEXTURE_GATHER);
	refuse_array(0, 0, 0);
	printf("some kinds are refused\n");
}

static void
refuse(CUarrayMapInfo info)
{
	REQUIRE(DRIVER(cuMemMapArrayAsync)(&info, 1, stream) != CUDA_SUCCESS);
}

static void
wrong()
{
	CUDA_ARRAY_SPARSE_PROPERTIES tiles = get_tiles(0, 0);
	const unsigned w = tiles.tileExtent.width, h = tiles.tileExtent.height;
	const part all = { 0, 0, 0, 0, w, h, 1 };
	CUDA_ARRAY3D_DESCRIPTOR described = describe(w, h, 0, 0);
	CUmemGenericAllocationHandle memory = make_memory(1), plain;
	CUarray array = make_array(w, h, 0, 0), dense;
	CUarrayMapInfo info;

	described.Flags = 0;
	DCHECK(DRIVER(cuArray3DCreate)(&dense, &described));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuArrayGetSparseProperties)(&tiles, dense));
	prop.allocFlags.usage = 0;
	plain = app_physical_create(prop, granule);
	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	refuse(map_info(dense, all, memory, 0));
	refuse(map_info(array, all, plain, 0));
	refuse(map_info(array, { 0, 0, 1, 0, w, h, 1 }, memory, 0));
	refuse(map_info(array, { 0, 0, 0, 0, 2 * w, h, 1 }, memory, 0));
	refuse(map_info(array, { 1, 0, 0, 0, w, h, 1 }, memory, 0));
	refuse(map_info(array, all, memory, granule));
	info = map_info(array, all, memory, 0);
	info.deviceBitMask = 0;
	refuse(info);
	info = map_info(array, all, memory, 0);
	info.flags = 1;
	refuse(info);
	DCHECK(DRIVER(cuMemRelease)(plain));
	DCHECK(DRIVER(cuMemRelease)(memory));
	DCHECK(DRIVER(cuArrayDestroy)(dense));
	DCHECK(DRIVER(cuArrayDestroy)(array));
	printf("what is wrong is refused\n");
}

int
main()
{
	prepare();
	two_dimensions();
	layers();
	three_dimensions();
	shallow();
	levels(0, 4, 6);
	levels(2, 2, 4);
	kinds();
	wrong();
	return app_ok("sparse");
}
