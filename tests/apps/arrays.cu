/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays of every shape: creation, queries, and copies of all forms. */
#include "app.h"

#include <cuda.h>

template <typename F>
static F
driver(const char *name, F)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 13000, cudaEnableDefault, &found));
	REQUIRE(function);
	return reinterpret_cast<F>(function);
}
#define DRIVER(name) driver(#name, static_cast<decltype(&name)>(nullptr))
#define GIVES(expected, call) REQUIRE((call) == (expected))
#define MUST(call) GIVES(CUDA_SUCCESS, call)

static unsigned int
value_at(size_t x, size_t y, size_t z)
{
	return (unsigned int)(x + 1000 * y + 1000000 * z + 7);
}

static std::vector<unsigned int>
make_volume(size_t width, size_t height, size_t depth)
{
	std::vector<unsigned int> host;

	for (size_t z = 0; z < depth; z++)
		for (size_t y = 0; y < height; y++)
			for (size_t x = 0; x < width; x++)
				host.push_back(value_at(x, y, z));
	return host;
}

static cudaArray_t
make_array(size_t width, size_t height, size_t depth, unsigned int flags)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned int>();
	cudaArray_t array = nullptr;

	CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), flags));
	return array;
}

/* Copies between a box of the array and packed host memory. */
static cudaMemcpy3DParms
box(cudaArray_t array, cudaPos at, std::vector<unsigned int> &host, cudaExtent extent, bool up)
{
	cudaMemcpy3DParms copy = {};
	cudaPitchedPtr packed =
		make_cudaPitchedPtr(host.data(), extent.width * 4, extent.width * 4, extent.height);

	copy.extent = extent;
	if (up) {
		copy.srcPtr = packed;
		copy.dstArray = array;
		copy.dstPos = at;
		copy.kind = cudaMemcpyHostToDevice;
	} else {
		copy.srcArray = array;
		copy.srcPos = at;
		copy.dstPtr = packed;
		copy.kind = cudaMemcpyDeviceToHost;
	}
	return copy;
}

/* To the array: all of it. From the array: all of it, and a part. */
static void
shape(const char *name, size_t width, size_t height, size_t depth, unsigned int flags, bool async)
{
	const size_t rows = height ? height : 1, slices = depth ? depth : 1;
	cudaArray_t array = make_array(width, height, depth, flags);
	std::vector<unsigned int> host = make_volume(width, rows, slices);
	std::vector<unsigned int> back(host.size());
	cudaExtent whole = make_cudaExtent(width, rows, slices), seen;
	cudaExtent part = make_cudaExtent((width + 1) / 2, (rows + 1) / 2, (slices + 1) / 2);
	cudaPos at = make_cudaPos(width / 2, rows / 2, slices / 2);
	std::vector<unsigned int> corner(part.width * part.height * part.depth);
	cudaMemcpy3DParms up = box(array, make_cudaPos(0, 0, 0), host, whole, true);
	cudaMemcpy3DParms down = box(array, make_cudaPos(0, 0, 0), back, whole, false);
	cudaMemcpy3DParms some = box(array, at, corner, part, false);
	cudaChannelFormatDesc format;
	unsigned int seen_flags;
	cudaStream_t stream;

	CHECK(cudaArrayGetInfo(&format, &seen, &seen_flags, array));
	REQUIRE(seen.width == width && seen.height == height && seen.depth == depth);
	REQUIRE(seen_flags == flags && format.x == 32 && format.y == 0);
	REQUIRE(format.f == cudaChannelFormatKindUnsigned);
	if (async) {
		CHECK(cudaStreamCreate(&stream));
		CHECK(cudaMemcpy3DAsync(&up, stream));
		CHECK(cudaMemcpy3DAsync(&down, stream));
		CHECK(cudaMemcpy3DAsync(&some, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaStreamDestroy(stream));
	} else {
		CHECK(cudaMemcpy3D(&up));
		CHECK(cudaMemcpy3D(&down));
		CHECK(cudaMemcpy3D(&some));
	}
	REQUIRE(back == host);
	for (size_t i = 0; i < corner.size(); i++) {
		size_t x = i % part.width, y = i / part.width % part.height;
		size_t z = i / part.width / part.height;

		REQUIRE(corner[i] == value_at(x + at.x, y + at.y, z + at.z));
	}
	CHECK(cudaFreeArray(array));
	printf("%s%s\n", name, async ? ", on a stream" : "");
}

static void
shapes(bool async)
{
	shape("1D", 1001, 0, 0, 0, async);
	shape("2D", 123, 77, 0, 0, async);
	shape("2D of several MiB", 2000, 1003, 0, 0, async);
	shape("3D", 45, 33, 21, 0, async);
	shape("1D layered", 64, 0, 9, cudaArrayLayered, async);
	shape("2D layered", 65, 31, 7, cudaArrayLayered, async);
	shape("cube map", 24, 24, 6, cudaArrayCubemap, async);
	shape("layered cube map", 16, 16, 12, cudaArrayCubemap | cudaArrayLayered, async);
	shape("2D for surfaces", 50, 40, 0, cudaArraySurfaceLoadStore, async);
}

/* Rows with a pitch, at an offset, and between arrays. */
static void
rectangles()
{
	const size_t width = 40, height = 30, pitch = 256;
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned int>();
	std::vector<unsigned int> host = make_volume(pitch / 4, height, 1), back(width * height);
	unsigned int *device;
	size_t device_pitch;
	cudaArray_t a, b;

	CHECK(cudaMallocArray(&a, &format, width, height));
	CHECK(cudaMallocArray(&b, &format, width, height));
	CHECK(cudaMemcpy2DToArray(a, 0, 0, host.data(), pitch, width * 4, height,
				  cudaMemcpyHostToDevice));
	std::vector<unsigned int> zeros(width * height);
	CHECK(cudaMemcpy2DToArray(b, 0, 0, zeros.data(), width * 4, width * 4, height,
				  cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DArrayToArray(b, 10 * 4, 5, a, 3 * 4, 7, 20 * 4, 11,
				       cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy2DFromArray(back.data(), width * 4, b, 0, 0, width * 4, height,
				    cudaMemcpyDeviceToHost));
	for (size_t y = 0; y < height; y++) {
		for (size_t x = 0; x < width; x++) {
			bool inside = x >= 10 && x < 30 && y >= 5 && y < 16;
			unsigned int want = inside ? value_at(x - 7, y + 2, 0) : 0;

			REQUIRE(back[y * width + x] == want);
		}
	}
	/* Copies through device memory with a pitch, in both directions. */
	CHECK(cudaMallocPitch(&device, &device_pitch, width * 4, height));
	CHECK(cudaMemcpy2DFromArrayAsync(device, device_pitch, a, 0, 0, width * 4, height,
					 cudaMemcpyDeviceToDevice, 0));
	CHECK(cudaMemcpy2DToArrayAsync(b, 0, 0, device, device_pitch, width * 4, height,
				       cudaMemcpyDeviceToDevice, 0));
	CHECK(cudaMemcpy2DFromArray(back.data(), width * 4, b, 0, 0, width * 4, height,
				    cudaMemcpyDefault));
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			REQUIRE(back[y * width + x] == value_at(x, y, 0));
	CHECK(cudaFree(device));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	printf("rectangles\n");
}

/* A volume of device memory with a gap between its slices, copied to an array and back. */
static void
volumes()
{
	const cudaExtent extent = make_cudaExtent(20, 12, 10);
	cudaArray_t array = make_array(extent.width, extent.height, extent.depth, 0);
	std::vector<unsigned int> host = make_volume(extent.width, extent.height, extent.depth);
	std::vector<unsigned int> back(host.size());
	cudaPitchedPtr device;

	CHECK(cudaMalloc3D(&device, make_cudaExtent(100, 15, 10)));
	cudaMemcpy3DParms copy = {};
	copy.srcPtr = make_cudaPitchedPtr(host.data(), 80, 80, extent.height);
	copy.dstPtr = device;
	copy.dstPtr.ysize = 15;
	copy.extent = make_cudaExtent(80, extent.height, extent.depth);
	copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&copy));
	copy = {};
	copy.srcPtr = device;
	copy.srcPtr.ysize = 15;
	copy.dstArray = array;
	copy.extent = extent;
	copy.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3D(&copy));
	CHECK(cudaMemset3D(device, 0, make_cudaExtent(100, 15, 10)));
	copy = {};
	copy.srcArray = array;
	copy.dstPtr = device;
	copy.dstPtr.ysize = 15;
	copy.extent = extent;
	copy.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3D(&copy));
	copy = {};
	copy.srcPtr = device;
	copy.srcPtr.ysize = 15;
	copy.dstPtr = make_cudaPitchedPtr(back.data(), 80, 80, extent.height);
	copy.extent = make_cudaExtent(80, extent.height, extent.depth);
	copy.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3D(&copy));
	REQUIRE(back == host);
	CHECK(cudaFree(device.ptr));
	CHECK(cudaFreeArray(array));
	printf("volumes\n");
}

/* The driver's copies of a single row. */
static void
rows()
{
	static const auto h_to_a = DRIVER(cuMemcpyHtoA);
	static const auto a_to_h = DRIVER(cuMemcpyAtoH);
	static const auto h_to_a_async = DRIVER(cuMemcpyHtoAAsync);
	static const auto a_to_h_async = DRIVER(cuMemcpyAtoHAsync);
	static const auto d_to_a = DRIVER(cuMemcpyDtoA);
	static const auto a_to_d = DRIVER(cuMemcpyAtoD);
	static const auto a_to_a = DRIVER(cuMemcpyAtoA);
	const size_t count = 500;
	CUarray a = (CUarray)make_array(count, 0, 0, 0), b = (CUarray)make_array(count, 0, 0, 0);
	std::vector<unsigned int> host = make_volume(count, 1, 1), back(count);
	unsigned int *device = app_malloc<unsigned int>(count);
	CUdeviceptr address = (CUdeviceptr)device;
	unsigned int *pinned;
	cudaStream_t stream;

	MUST(h_to_a(a, 0, host.data(), count * 4));
	MUST(a_to_a(b, 40, a, 400, 800));
	MUST(a_to_d(address, b, 40, 800));
	MUST(d_to_a(b, 1000, address, 800));
	MUST(a_to_h(back.data(), b, 1000, 800));
	for (size_t i = 0; i < 200; i++)
		REQUIRE(back[i] == value_at(i + 100, 0, 0));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMallocHost(&pinned, count * 4));
	memcpy(pinned, host.data(), count * 4);
	MUST(h_to_a_async(b, 0, pinned, count * 4, stream));
	memset(back.data(), 0, count * 4);
	CHECK(cudaStreamSynchronize(stream));
	memset(pinned, 0, count * 4);
	MUST(a_to_h_async(pinned, b, 0, count * 4, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(memcmp(pinned, host.data(), count * 4) == 0);
	GIVES(CUDA_ERROR_INVALID_VALUE, h_to_a(a, 4, host.data(), count * 4));
	GIVES(CUDA_ERROR_INVALID_VALUE, a_to_h(back.data(), a, count * 4, 4));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(device));
	CHECK(cudaFreeArray((cudaArray_t)a));
	CHECK(cudaFreeArray((cudaArray_t)b));
	printf("rows\n");
}

static void
mipmaps()
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned int>();
	cudaMipmappedArray_t mipmap;
	std::vector<unsigned int> host, back;

	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(100, 40, 0), 5, 0));
	for (unsigned int level = 0; level < 5; level++) {
		cudaExtent extent, want = make_cudaExtent(100 >> level, 40 >> level, 0);
		cudaArray_t array;

		CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
		CHECK(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
		REQUIRE(extent.width == want.width && extent.height == want.height);
		host = make_volume(want.width, want.height, 1);
		for (unsigned int &value : host)
			value += level << 28;
		CHECK(cudaMemcpy2DToArray(array, 0, 0, host.data(), want.width * 4, want.width * 4,
					  want.height, cudaMemcpyHostToDevice));
	}
	for (unsigned int level = 0; level < 5; level++) {
		size_t width = 100 >> level, height = 40 >> level;
		cudaArray_t array;

		CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
		host = make_volume(width, height, 1);
		back.assign(host.size(), 0);
		CHECK(cudaMemcpy2DFromArray(back.data(), width * 4, array, 0, 0, width * 4, height,
					    cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < host.size(); i++)
			REQUIRE(back[i] == host[i] + (level << 28));
	}
	cudaArray_t none;
	EXPECT(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&none, mipmap, 5));
	CHECK(cudaFreeMipmappedArray(mipmap));
	/* A number of levels above the maximum is reduced to the maximum. */
	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(16, 8, 4), 100, 0));
	CHECK(cudaGetMipmappedArrayLevel(&none, mipmap, 4));
	EXPECT(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&none, mipmap, 5));
	CHECK(cudaFreeMipmappedArray(mipmap));
	printf("mipmaps\n");
}

template <typename T>
static void
element(int channels, CUarray_format want)
{
	static const auto describe = DRIVER(cuArray3DGetDescriptor);
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
	CUDA_ARRAY3D_DESCRIPTOR described;
	std::vector<unsigned char> host(33 * 9 * sizeof(T)), back(host.size());
	cudaArray_t array;

	for (size_t i = 0; i < host.size(); i++)
		host[i] = (unsigned char)(i * 13 + 5);
	CHECK(cudaMallocArray(&array, &format, 33, 9));
	MUST(describe(&described, (CUarray)array));
	REQUIRE(described.Width == 33 && described.Height == 9 && described.Depth == 0);
	REQUIRE(described.Format == want && described.NumChannels == (unsigned int)channels);
	CHECK(cudaMemcpy2DToArray(array, 0, 0, host.data(), 33 * sizeof(T), 33 * sizeof(T), 9,
				  cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DFromArray(back.data(), 33 * sizeof(T), array, 0, 0, 33 * sizeof(T), 9,
				    cudaMemcpyDeviceToHost));
	REQUIRE(back == host);
	CHECK(cudaFreeArray(array));
}

static void
elements()
{
	element<unsigned char>(1, CU_AD_FORMAT_UNSIGNED_INT8);
	element<char2>(2, CU_AD_FORMAT_SIGNED_INT8);
	element<uchar4>(4, CU_AD_FORMAT_UNSIGNED_INT8);
	element<short>(1, CU_AD_FORMAT_SIGNED_INT16);
	element<ushort4>(4, CU_AD_FORMAT_UNSIGNED_INT16);
	element<int2>(2, CU_AD_FORMAT_SIGNED_INT32);
	element<float>(1, CU_AD_FORMAT_FLOAT);
	element<float4>(4, CU_AD_FORMAT_FLOAT);
	printf("elements\n");
}

/* Repeatedly destroys an array during a copy. */
static void
churn()
{
	std::vector<unsigned int> host = make_volume(256, 64, 1), back(host.size());
	unsigned int *device = app_malloc<unsigned int>(host.size());

	for (int i = 0; i < 30; i++) {
		cudaArray_t array = make_array(256, 64, 0, 0);

		host[0] = (unsigned int)i;
		CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, host.data(), 1024, 1024, 64,
					       cudaMemcpyHostToDevice, 0));
		CHECK(cudaMemcpy2DFromArrayAsync(device, 1024, array, 0, 0, 1024, 64,
						 cudaMemcpyDeviceToDevice, 0));
		CHECK(cudaFreeArray(array));
		CHECK(cudaMemcpy(back.data(), device, back.size() * 4, cudaMemcpyDeviceToHost));
		REQUIRE(back == host);
	}
	CHECK(cudaFree(device));
	printf("churn\n");
}

static void
misuse()
{
	static const auto create = DRIVER(cuArray3DCreate);
	static const auto copy_2d = DRIVER(cuMemcpy2D);
	CUDA_ARRAY3D_DESCRIPTOR good = {}, bad;
	CUDA_MEMCPY2D copy = {};
	std::vector<unsigned int> host(100 * 100);
	CUarray array;

	good.Width = 64;
	good.Height = 32;
	good.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	good.NumChannels = 1;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(nullptr, &good));
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, nullptr));
	bad = good;
	bad.Width = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, &bad));
	bad = good;
	bad.NumChannels = 3;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, &bad));
	bad = good;
	bad.Format = (CUarray_format)0x77;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, &bad));
	bad = good;
	bad.Height = 0;
	bad.Depth = 8;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, &bad));
	bad = good;
	bad.Flags = CUDA_ARRAY3D_CUBEMAP;
	bad.Depth = 6;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, &bad));
	bad = good;
	bad.Width = (size_t)1 << 40;
	GIVES(CUDA_ERROR_INVALID_VALUE, create(&array, &bad));

	MUST(create(&array, &good));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = host.data();
	copy.srcPitch = 400;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.WidthInBytes = 256;
	copy.Height = 32;
	MUST(copy_2d(&copy));
	copy.Height = 33;
	GIVES(CUDA_ERROR_INVALID_VALUE, copy_2d(&copy));
	copy.Height = 32;
	copy.dstY = 1;
	GIVES(CUDA_ERROR_INVALID_VALUE, copy_2d(&copy));
	copy.dstY = 0;
	copy.dstXInBytes = 4;
	GIVES(CUDA_ERROR_INVALID_VALUE, copy_2d(&copy));
	copy.dstXInBytes = 0;
	copy.WidthInBytes = 260;
	GIVES(CUDA_ERROR_INVALID_VALUE, copy_2d(&copy));
	CHECK(cudaFreeArray((cudaArray_t)array));
	CHECK(cudaFreeArray(nullptr));
	printf("misuse\n");
}

int
main()
{
	shapes(false);
	shapes(true);
	rectangles();
	volumes();
	rows();
	mipmaps();
	elements();
	churn();
	misuse();
	return app_ok("arrays");
}
