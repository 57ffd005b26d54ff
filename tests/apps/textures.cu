/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects in kernels: the results of fetches that CUDA specifies. */
#include "app.h"

#include <cmath>

static const int WIDTH = 37, HEIGHT = 21, DEPTH = 5;

static float
value_at(int x, int y, int z)
{
	return (float)(x + 64 * y + 4096 * z);
}

static std::vector<float>
make_volume(int width, int height, int depth)
{
	std::vector<float> host;

	for (int z = 0; z < depth; z++)
		for (int y = 0; y < height; y++)
			for (int x = 0; x < width; x++)
				host.push_back(value_at(x, y, z));
	return host;
}

template <typename T>
static cudaArray_t
make_array(const std::vector<T> &host, int width, int height, int depth, unsigned int flags)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
	const size_t rows = height ? height : 1, slices = depth ? depth : 1;
	cudaMemcpy3DParms copy = {};
	cudaArray_t array;

	CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), flags));
	copy.srcPtr = make_cudaPitchedPtr((void *)host.data(), width * sizeof(T), width * sizeof(T),
					  rows);
	copy.dstArray = array;
	copy.extent = make_cudaExtent(width, rows, slices);
	copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&copy));
	return array;
}

static cudaTextureObject_t
make_texture(cudaArray_t array, cudaTextureAddressMode mode, cudaTextureFilterMode filter,
	     cudaTextureReadMode read, bool normalized)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaTextureObject_t texture;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	for (int i = 0; i < 3; i++)
		description.addressMode[i] = mode;
	description.filterMode = filter;
	description.readMode = read;
	description.normalizedCoords = normalized;
	description.borderColor[0] = 77.0f;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	return texture;
}

/* Coordinates: the first kernel argument of each fetch below. */
struct places {
	const float *x, *y, *z;
	int count;
};

#define EACH(i, places)                                                                            \
	(int i = blockIdx.x * blockDim.x + threadIdx.x; i < (places).count; i = 1 << 30)

__global__ void
fetch_1d(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex1D<float>(texture, places.x[i]);
}

__global__ void
fetch_2d(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex2D<float>(texture, places.x[i], places.y[i]);
}

__global__ void
fetch_3d(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex3D<float>(texture, places.x[i], places.y[i], places.z[i]);
}

__global__ void
fetch_layers(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex2DLayered<float>(texture, places.x[i], places.y[i], (int)places.z[i]);
}

__global__ void
fetch_row_layers(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex1DLayered<float>(texture, places.x[i], (int)places.z[i]);
}

__global__ void
fetch_cube(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = texCubemap<float>(texture, places.x[i], places.y[i], places.z[i]);
}

__global__ void
fetch_level(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex2DLod<float>(texture, places.x[i], places.y[i], places.z[i]);
}

/* Distance between neighbors, in texels. */
__global__ void
fetch_gradient(cudaTextureObject_t texture, places places, float *out)
{
	for
		EACH(i, places)
	out[i] = tex2DGrad<float>(texture, places.x[i], places.y[i],
				  make_float2(places.z[i] / 16, 0),
				  make_float2(0, places.z[i] / 16));
}

typedef void kernel(cudaTextureObject_t, places, float *);

static std::vector<float>
fetch_all(kernel *run, cudaTextureObject_t texture, const std::vector<float> &x,
	  const std::vector<float> &y, const std::vector<float> &z)
{
	float *dx = app_upload(x), *dy = app_upload(y), *dz = app_upload(z);
	float *out = app_malloc<float>(x.size());
	places places = { dx, dy, dz, (int)x.size() };

	run<<<(unsigned int)(x.size() + 63) / 64, 64>>>(texture, places, out);
	CHECK(cudaGetLastError());
	std::vector<float> found = app_download(out, x.size());
	CHECK(cudaFree(dx));
	CHECK(cudaFree(dy));
	CHECK(cudaFree(dz));
	CHECK(cudaFree(out));
	return found;
}

/* Returns the texel's index on an axis of `count` texels for any index; -1: border. */
static int
resolve(int index, int count, cudaTextureAddressMode mode)
{
	switch (mode) {
	case cudaAddressModeBorder:
		return index < 0 || index >= count ? -1 : index;
	case cudaAddressModeWrap:
		return (index % count + count) % count;
	case cudaAddressModeMirror:
		index = (index % (2 * count) + 2 * count) % (2 * count);
		return index < count ? index : 2 * count - 1 - index;
	default:
		return index < 0 ? 0 : index >= count ? count - 1 : index;
	}
}

static float
texel(int x, int y, int z, const int *size, cudaTextureAddressMode mode)
{
	x = resolve(x, size[0], mode);
	y = size[1] ? resolve(y, size[1], mode) : 0;
	z = size[2] ? resolve(z, size[2], mode) : 0;
	return x < 0 || y < 0 || z < 0 ? 77.0f : value_at(x, y, z);
}

static float
filtered(float x, float y, float z, const int *size, cudaTextureAddressMode mode)
{
	float at[3] = { x - 0.5f, y - 0.5f, z - 0.5f }, sum = 0;
	int low[3];
	float part[3];

	for (int i = 0; i < 3; i++) {
		low[i] = size[i] ? (int)floorf(at[i]) : 0;
		part[i] = size[i] ? at[i] - floorf(at[i]) : 0;
	}
	for (int k = 0; k < 8; k++) {
		float weight = 1;

		for (int i = 0; i < 3; i++)
			weight *= k >> i & 1 ? part[i] : 1 - part[i];
		if (weight > 0)
			sum += weight * texel(low[0] + (k & 1), low[1] + (k >> 1 & 1),
					      low[2] + (k >> 2 & 1), size, mode);
	}
	return sum;
}

/* Coordinates inside and outside, at quarters of texels, where the hardware's weights are exact. */
static void
sample(const char *name, kernel *run, int width, int height, int depth, cudaTextureAddressMode mode,
       bool linear, bool normalized)
{
	const int size[3] = { width, height, depth };
	std::vector<float> host = make_volume(width, height ? height : 1, depth ? depth : 1);
	cudaArray_t array = make_array(host, width, height, depth, 0);
	cudaTextureObject_t texture =
		make_texture(array, mode, linear ? cudaFilterModeLinear : cudaFilterModePoint,
			     cudaReadModeElementType, normalized);
	std::vector<float> x, y, z, want;

	for (int i = 0; i < 200; i++) {
		/* Not at the edges between texels, where rounding decides. */
		float at[3] = { (float)(i * 7 % (2 * width)) - width / 2 +
					(linear ? 0.25f : 0.375f),
				height ? (float)(i * 5 % (2 * height)) - height / 2 + 0.75f : 0,
				depth ? (float)(i * 3 % (2 * depth)) - depth / 2 + 0.75f : 0 };

		x.push_back(normalized ? at[0] / width : at[0]);
		y.push_back(normalized && height ? at[1] / height : at[1]);
		z.push_back(normalized && depth ? at[2] / depth : at[2]);
		if (linear)
			want.push_back(filtered(at[0], at[1], at[2], size, mode));
		else
			want.push_back(texel((int)floorf(at[0]), (int)floorf(at[1]),
					     (int)floorf(at[2]), size, mode));
	}
	std::vector<float> found = fetch_all(run, texture, x, y, z);
	for (size_t i = 0; i < want.size(); i++) {
		float allowed = linear ? fabsf(want[i]) * 0.01f + 0.3f : 0.0f;

		if (fabsf(found[i] - want[i]) > allowed) {
			printf("%s: place %zu (%g %g %g): %g, not %g\n", name, i, x[i], y[i], z[i],
			       found[i], want[i]);
			app_fail("another value", __LINE__);
		}
	}
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
	printf("%s\n", name);
}

static void
sampling()
{
	sample("1D, clamp", fetch_1d, 32, 0, 0, cudaAddressModeClamp, false, false);
	sample("1D, linear", fetch_1d, 32, 0, 0, cudaAddressModeClamp, true, false);
	sample("2D, clamp", fetch_2d, WIDTH, HEIGHT, 0, cudaAddressModeClamp, false, false);
	sample("2D, linear", fetch_2d, WIDTH, HEIGHT, 0, cudaAddressModeClamp, true, false);
	sample("3D, clamp", fetch_3d, WIDTH, HEIGHT, DEPTH, cudaAddressModeClamp, false, false);
	sample("3D, linear", fetch_3d, WIDTH, HEIGHT, DEPTH, cudaAddressModeClamp, true, false);
	/* Powers of two, so that normalized coordinates are exact. */
	sample("normalized, clamp", fetch_2d, 32, 16, 0, cudaAddressModeClamp, false, true);
	sample("normalized, border", fetch_2d, 32, 16, 0, cudaAddressModeBorder, false, true);
	sample("normalized, linear, border", fetch_2d, 32, 16, 0, cudaAddressModeBorder, true,
	       true);
	sample("normalized, 1D, border", fetch_1d, 32, 0, 0, cudaAddressModeBorder, false, true);
	sample("normalized, wrap", fetch_2d, 32, 16, 0, cudaAddressModeWrap, false, true);
	sample("normalized, mirror", fetch_2d, 32, 16, 0, cudaAddressModeMirror, false, true);
	sample("normalized, linear, wrap", fetch_2d, 32, 16, 0, cudaAddressModeWrap, true, true);
	sample("normalized, linear, mirror", fetch_2d, 32, 16, 0, cudaAddressModeMirror, true,
	       true);
	sample("normalized, linear, 3D", fetch_3d, 32, 16, 8, cudaAddressModeWrap, true, true);
}

template <typename T>
__global__ void
fetch_elements(cudaTextureObject_t texture, int width, int height, T *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < width && y < height)
		out[y * width + x] = tex2D<T>(texture, x + 0.5f, y + 0.5f);
}

template <typename T>
static void
element(const char *name)
{
	std::vector<T> host(WIDTH * HEIGHT);
	unsigned char *bytes = (unsigned char *)host.data();
	T *out = app_malloc<T>(host.size());

	/* Floats that are normal numbers. */
	for (size_t i = 0; i < host.size() * sizeof(T); i++)
		bytes[i] = (unsigned char)(i * 11 % 60 + 4);
	cudaArray_t array = make_array(host, WIDTH, HEIGHT, 0, 0);
	cudaTextureObject_t texture = make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
						   cudaReadModeElementType, false);
	fetch_elements<T><<<dim3((WIDTH + 31) / 32, HEIGHT), 32>>>(texture, WIDTH, HEIGHT, out);
	CHECK(cudaGetLastError());
	std::vector<T> found = app_download(out, host.size());
	REQUIRE(memcmp(found.data(), host.data(), host.size() * sizeof(T)) == 0);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
	CHECK(cudaFree(out));
	printf("%s\n", name);
}

__global__ void
fetch_fractions(cudaTextureObject_t texture, int count, float4 *out)
{
	int x = threadIdx.x;

	if (x < count)
		out[x] = tex1D<float4>(texture, x + 0.5f);
}

template <typename T>
static void
fractions(const char *name, const std::vector<T> &host, float most)
{
	float4 *out = app_malloc<float4>(host.size());
	cudaArray_t array = make_array(host, (int)host.size(), 0, 0, 0);
	cudaTextureObject_t texture = make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
						   cudaReadModeNormalizedFloat, false);

	fetch_fractions<<<1, 64>>>(texture, (int)host.size(), out);
	CHECK(cudaGetLastError());
	std::vector<float4> found = app_download(out, host.size());
	for (size_t i = 0; i < host.size(); i++) {
		REQUIRE(fabsf(found[i].x - fmaxf(host[i].x / most, -1.0f)) < 1e-5f);
		REQUIRE(fabsf(found[i].y - fmaxf(host[i].y / most, -1.0f)) < 1e-5f);
		REQUIRE(fabsf(found[i].z - fmaxf(host[i].z / most, -1.0f)) < 1e-5f);
		REQUIRE(fabsf(found[i].w - fmaxf(host[i].w / most, -1.0f)) < 1e-5f);
	}
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
	CHECK(cudaFree(out));
	printf("%s\n", name);
}

static void
elements()
{
	std::vector<uchar4> bytes;
	std::vector<char4> signed_bytes;
	std::vector<ushort4> words;
	std::vector<short4> signed_words;

	element<unsigned char>("uchar");
	element<uchar4>("uchar4");
	element<short>("short");
	element<ushort2>("ushort2");
	element<int>("int");
	element<uint4>("uint4");
	element<float>("float");
	element<float2>("float2");
	element<float4>("float4");
	for (int i = 0; i < 40; i++) {
		int a = i * 6, b = 255 - a, c = i * 13 % 256, d = (i * 77 + 5) % 256;

		bytes.push_back(
			{ (unsigned char)a, (unsigned char)b, (unsigned char)c, (unsigned char)d });
		signed_bytes.push_back({ (signed char)(a - 128), (signed char)(b - 128),
					 (signed char)(c - 128), (signed char)(d - 128) });
		words.push_back({ (unsigned short)(a * 257), (unsigned short)(b * 201),
				  (unsigned short)(c * 255), (unsigned short)(d * 3) });
		signed_words.push_back({ (short)(a * 257 - 32768), (short)(b * 201 - 32768),
					 (short)(c * 255 - 32768), (short)(d * 3 - 32768) });
	}
	fractions("uchar4 as fractions", bytes, 255.0f);
	fractions("char4 as fractions", signed_bytes, 127.0f);
	fractions("ushort4 as fractions", words, 65535.0f);
	fractions("short4 as fractions", signed_words, 32767.0f);
}

__global__ void
fetch_index(cudaTextureObject_t texture, int count, int4 *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		out[i] = tex1Dfetch<int4>(texture, count - 1 - i);
}

static void
linear_memory()
{
	const int count = 1000;
	std::vector<int4> host;
	cudaResourceDesc resource = {}, seen;
	cudaTextureDesc description = {}, seen_description;
	cudaTextureObject_t texture;

	for (int i = 0; i < count; i++)
		host.push_back({ i, -i, i * i, 7 });
	int4 *device = app_upload(host), *out = app_malloc<int4>(count);
	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = device;
	resource.res.linear.desc = cudaCreateChannelDesc<int4>();
	resource.res.linear.sizeInBytes = count * sizeof(int4);
	description.readMode = cudaReadModeElementType;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	CHECK(cudaGetTextureObjectResourceDesc(&seen, texture));
	REQUIRE(seen.resType == cudaResourceTypeLinear && seen.res.linear.devPtr == device);
	REQUIRE(seen.res.linear.sizeInBytes == count * sizeof(int4));
	CHECK(cudaGetTextureObjectTextureDesc(&seen_description, texture));
	REQUIRE(seen_description.readMode == cudaReadModeElementType);
	REQUIRE(seen_description.normalizedCoords == 0);
	fetch_index<<<4, 256>>>(texture, count, out);
	CHECK(cudaGetLastError());
	std::vector<int4> found = app_download(out, count);
	for (int i = 0; i < count; i++)
		REQUIRE(memcmp(&found[i], &host[count - 1 - i], sizeof(int4)) == 0);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFree(device));
	CHECK(cudaFree(out));
	printf("linear memory\n");
}

static void
pitched_memory()
{
	std::vector<float> host = make_volume(WIDTH, HEIGHT, 1), x, y;
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaTextureObject_t texture;
	float *device;
	size_t pitch;

	CHECK(cudaMallocPitch(&device, &pitch, WIDTH * 4, HEIGHT));
	CHECK(cudaMemcpy2D(device, pitch, host.data(), WIDTH * 4, WIDTH * 4, HEIGHT,
			   cudaMemcpyHostToDevice));
	resource.resType = cudaResourceTypePitch2D;
	resource.res.pitch2D.devPtr = device;
	resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
	resource.res.pitch2D.width = WIDTH;
	resource.res.pitch2D.height = HEIGHT;
	resource.res.pitch2D.pitchInBytes = pitch;
	for (int i = 0; i < 3; i++)
		description.addressMode[i] = cudaAddressModeClamp;
	description.filterMode = cudaFilterModeLinear;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	for (int i = 0; i < 100; i++) {
		x.push_back((float)(i % WIDTH) + 0.5f);
		y.push_back((float)(i % (HEIGHT - 1)) + 1.0f);
	}
	std::vector<float> found = fetch_all(fetch_2d, texture, x, y, y);
	for (int i = 0; i < 100; i++) {
		int row = i % (HEIGHT - 1);
		float want = (value_at(i % WIDTH, row, 0) + value_at(i % WIDTH, row + 1, 0)) / 2;

		REQUIRE(fabsf(found[i] - want) < 0.3f + want * 0.01f);
	}
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFree(device));
	printf("pitched memory\n");
}

static void
layers()
{
	std::vector<float> host = make_volume(32, 16, 6), x, y, z, want;
	cudaArray_t array = make_array(host, 32, 16, 6, cudaArrayLayered);
	cudaTextureObject_t texture = make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
						   cudaReadModeElementType, false);

	for (int i = 0; i < 96; i++) {
		x.push_back((float)(i % 32) + 0.5f);
		y.push_back((float)(i * 3 % 16) + 0.5f);
		z.push_back((float)(i % 6));
		want.push_back(value_at(i % 32, i * 3 % 16, i % 6));
	}
	REQUIRE(fetch_all(fetch_layers, texture, x, y, z) == want);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));

	host = make_volume(32, 1, 6);
	array = make_array(host, 32, 0, 6, cudaArrayLayered);
	texture = make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
			       cudaReadModeElementType, false);
	for (int i = 0; i < 96; i++)
		want[i] = value_at(i % 32, 0, i % 6);
	REQUIRE(fetch_all(fetch_row_layers, texture, x, y, z) == want);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
	printf("layers\n");
}

/* The center of each face of a cube whose faces have one value each. */
static void
cube()
{
	std::vector<float> host, want = { 0, 1, 2, 3, 4, 5 };

	for (int face = 0; face < 6; face++)
		host.insert(host.end(), 8 * 8, (float)face);
	cudaArray_t array = make_array(host, 8, 8, 6, cudaArrayCubemap);
	cudaTextureObject_t texture = make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
						   cudaReadModeElementType, true);
	REQUIRE(fetch_all(fetch_cube, texture, { 1, -1, 0.1f, 0.1f, 0.2f, 0.2f },
			  { 0.1f, 0.1f, 1, -1, 0.1f, 0.1f },
			  { 0.2f, 0.2f, 0.2f, 0.2f, 1, -1 }) == want);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
	printf("cube map\n");
}

static void
mipmaps()
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaMipmappedArray_t mipmap;
	cudaTextureObject_t texture;

	CHECK(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(16, 16, 0), 4));
	for (int level = 0; level < 4; level++) {
		size_t size = 16 >> level;
		std::vector<float> host(size * size, 100.0f * level);
		cudaArray_t array;

		CHECK(cudaGetMipmappedArrayLevel(&array, mipmap, level));
		CHECK(cudaMemcpy2DToArray(array, 0, 0, host.data(), size * 4, size * 4, size,
					  cudaMemcpyHostToDevice));
	}
	resource.resType = cudaResourceTypeMipmappedArray;
	resource.res.mipmap.mipmap = mipmap;
	for (int i = 0; i < 3; i++)
		description.addressMode[i] = cudaAddressModeClamp;
	description.normalizedCoords = 1;
	description.maxMipmapLevelClamp = 2;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	std::vector<float> at(5, 0.3f), want = { 0, 0, 100, 200, 200 };
	REQUIRE(fetch_all(fetch_level, texture, at, at, { 0, 0.25f, 1, 2, 3 }) == want);
	want = { 0, 0, 100, 200, 200 };
	REQUIRE(fetch_all(fetch_gradient, texture, at, at, { 0.5f, 1, 2, 4, 8 }) == want);
	CHECK(cudaDestroyTextureObject(texture));
	description.mipmapFilterMode = cudaFilterModeLinear;
	description.filterMode = cudaFilterModeLinear;
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	std::vector<float> found =
		fetch_all(fetch_level, texture, at, at, { 0, 0.5f, 1, 1.25f, 3 });
	want = { 0, 50, 100, 125, 200 };
	for (int i = 0; i < 5; i++)
		REQUIRE(fabsf(found[i] - want[i]) < 1.0f);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeMipmappedArray(mipmap));
	printf("mipmaps\n");
}

__global__ void
gather(cudaTextureObject_t texture, float x, float y, float4 *out)
{
	*out = tex2Dgather<float4>(texture, x, y, 0);
}

static void
gathering()
{
	std::vector<float> host = make_volume(32, 16, 1);
	cudaArray_t array = make_array(host, 32, 16, 0, cudaArrayTextureGather);
	cudaTextureObject_t texture = make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
						   cudaReadModeElementType, false);
	float4 *out = app_malloc<float4>(1);

	gather<<<1, 1>>>(texture, 5.0f, 7.0f, out);
	CHECK(cudaGetLastError());
	float4 found = app_download(out, 1)[0];
	REQUIRE(found.x == value_at(4, 7, 0) && found.y == value_at(5, 7, 0));
	REQUIRE(found.z == value_at(5, 6, 0) && found.w == value_at(4, 6, 0));
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFreeArray(array));
	CHECK(cudaFree(out));
	printf("gathering\n");
}

template <typename T>
__global__ void
write_2d(cudaSurfaceObject_t surface, const T *in, int width, int height)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < width && y < height)
		surf2Dwrite(in[y * width + x], surface, x * (int)sizeof(T), y);
}

template <typename T>
__global__ void
turn_2d(cudaSurfaceObject_t from, cudaSurfaceObject_t to, int width, int height)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < width && y < height) {
		T value = surf2Dread<T>(from, x * (int)sizeof(T), y);
		surf2Dwrite(value, to, (width - 1 - x) * (int)sizeof(T), height - 1 - y);
	}
}

static cudaSurfaceObject_t
make_surface(cudaArray_t array)
{
	cudaResourceDesc resource = {}, seen;
	cudaSurfaceObject_t surface;

	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CHECK(cudaCreateSurfaceObject(&surface, &resource));
	CHECK(cudaGetSurfaceObjectResourceDesc(&seen, surface));
	REQUIRE(seen.resType == cudaResourceTypeArray && seen.res.array.array == array);
	return surface;
}

template <typename T>
static void
surface(const char *name)
{
	std::vector<T> host(WIDTH * HEIGHT), back(host.size());
	unsigned char *bytes = (unsigned char *)host.data();
	const dim3 grid((WIDTH + 31) / 32, HEIGHT);

	for (size_t i = 0; i < host.size() * sizeof(T); i++)
		bytes[i] = (unsigned char)(i * 7 + 3);
	cudaArray_t a = make_array(back, WIDTH, HEIGHT, 0, cudaArraySurfaceLoadStore);
	cudaArray_t b = make_array(back, WIDTH, HEIGHT, 0, cudaArraySurfaceLoadStore);
	cudaSurfaceObject_t from = make_surface(a), to = make_surface(b);
	T *device = app_upload(host);
	write_2d<T><<<grid, 32>>>(from, device, WIDTH, HEIGHT);
	turn_2d<T><<<grid, 32>>>(from, to, WIDTH, HEIGHT);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy2DFromArray(back.data(), WIDTH * sizeof(T), b, 0, 0, WIDTH * sizeof(T),
				    HEIGHT, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < host.size(); i++)
		REQUIRE(memcmp(&back[host.size() - 1 - i], &host[i], sizeof(T)) == 0);
	CHECK(cudaDestroySurfaceObject(from));
	CHECK(cudaDestroySurfaceObject(to));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	CHECK(cudaFree(device));
	printf("surface of %s\n", name);
}

__global__ void
write_volume(cudaSurfaceObject_t volume, cudaSurfaceObject_t layered, cudaSurfaceObject_t row)
{
	int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;

	surf3Dwrite(x + 100 * y + 10000 * z, volume, x * 4, y, z);
	surf2DLayeredwrite(x - 100 * y - 10000 * z, layered, x * 4, y, z);
	if (y == 0 && z == 0)
		surf1Dwrite(x * x, row, x * 4);
}

__global__ void
read_volume(cudaSurfaceObject_t volume, cudaSurfaceObject_t layered, cudaSurfaceObject_t row,
	    int *wrong)
{
	int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;

	if (surf3Dread<int>(volume, x * 4, y, z) != x + 100 * y + 10000 * z ||
	    surf2DLayeredread<int>(layered, x * 4, y, z) != x - 100 * y - 10000 * z ||
	    surf1Dread<int>(row, x * 4) != x * x)
		atomicAdd(wrong, 1);
	/* Outside. */
	if (surf3Dread<int>(volume, 400, y, z, cudaBoundaryModeZero) != 0 ||
	    surf3Dread<int>(volume, x * 4, -1, z, cudaBoundaryModeZero) != 0 ||
	    surf1Dread<int>(row, 400, cudaBoundaryModeClamp) != 19 * 19)
		atomicAdd(wrong, 1000);
	surf1Dwrite(5, row, -4, cudaBoundaryModeZero);
}

static void
volumes_of_surfaces()
{
	std::vector<int> zeros(20 * 6 * 4);
	cudaArray_t a = make_array(zeros, 20, 6, 4, cudaArraySurfaceLoadStore);
	cudaArray_t b = make_array(zeros, 20, 6, 4, cudaArraySurfaceLoadStore | cudaArrayLayered);
	cudaArray_t c = make_array(zeros, 20, 0, 0, cudaArraySurfaceLoadStore);
	cudaSurfaceObject_t volume = make_surface(a), layered = make_surface(b);
	cudaSurfaceObject_t row = make_surface(c);
	int *wrong = app_upload(std::vector<int>(1));

	write_volume<<<dim3(6, 4), 20>>>(volume, layered, row);
	read_volume<<<dim3(6, 4), 20>>>(volume, layered, row, wrong);
	CHECK(cudaGetLastError());
	REQUIRE(app_download(wrong, 1)[0] == 0);
	CHECK(cudaDestroySurfaceObject(volume));
	CHECK(cudaDestroySurfaceObject(layered));
	CHECK(cudaDestroySurfaceObject(row));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	CHECK(cudaFreeArray(c));
	CHECK(cudaFree(wrong));
	printf("surfaces of volumes\n");
}

static void
surfaces()
{
	surface<unsigned char>("uchar");
	surface<short>("short");
	surface<int>("int");
	surface<float2>("float2");
	surface<uchar4>("uchar4");
	surface<uint4>("uint4");
	volumes_of_surfaces();
}

/* Texture and array are destroyed while the kernel runs, in either order. */
static void
churn()
{
	std::vector<float> host = make_volume(64, 64, 1), found;
	float *out = app_malloc<float>(host.size());

	for (int i = 0; i < 20; i++) {
		cudaArray_t array = make_array(host, 64, 64, 0, 0);
		cudaTextureObject_t texture =
			make_texture(array, cudaAddressModeClamp, cudaFilterModePoint,
				     cudaReadModeElementType, false);

		fetch_elements<float><<<dim3(2, 64), 32>>>(texture, 64, 64, out);
		CHECK(cudaGetLastError());
		CHECK(cudaDeviceSynchronize());
		CHECK(cudaDestroyTextureObject(texture));
		CHECK(cudaFreeArray(array));
		found = app_download(out, host.size());
		REQUIRE(found == host);
	}
	CHECK(cudaFree(out));
	printf("churn\n");
}

int
main()
{
	sampling();
	elements();
	linear_memory();
	pitched_memory();
	layers();
	cube();
	mipmaps();
	gathering();
	surfaces();
	churn();
	return app_ok("textures");
}
