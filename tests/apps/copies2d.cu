/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of pitched and three-dimensional linear memory. */
#include "app.h"

static unsigned char
value_at(size_t x, size_t y, size_t z)
{
	return (unsigned char)(x * 3 + y * 7 + z * 31 + 1);
}

static void
planes(bool async)
{
	const size_t width = 1001, height = 37, host_pitch = 1013;
	std::vector<unsigned char> host(host_pitch * height), back(host_pitch * height, 0xee);
	unsigned char *a, *b;
	size_t a_pitch, b_pitch;

	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			host[y * host_pitch + x] = value_at(x, y, 0);
	CHECK(cudaMallocPitch(&a, &a_pitch, width, height));
	REQUIRE(a_pitch >= width && a_pitch % 32 == 0);
	b_pitch = a_pitch + 256;
	b = app_malloc<unsigned char>(b_pitch * height);
	if (async) {
		CHECK(cudaMemcpy2DAsync(a, a_pitch, host.data(), host_pitch, width, height,
					cudaMemcpyHostToDevice, 0));
		CHECK(cudaMemcpy2DAsync(b, b_pitch, a, a_pitch, width, height,
					cudaMemcpyDeviceToDevice, 0));
		CHECK(cudaMemcpy2DAsync(back.data(), host_pitch, b, b_pitch, width, height,
					cudaMemcpyDefault, 0));
		CHECK(cudaStreamSynchronize(0));
	} else {
		CHECK(cudaMemcpy2D(a, a_pitch, host.data(), host_pitch, width, height,
				   cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy2D(b, b_pitch, a, a_pitch, width, height, cudaMemcpyDefault));
		CHECK(cudaMemcpy2D(back.data(), host_pitch, b, b_pitch, width, height,
				   cudaMemcpyDeviceToHost));
	}
	for (size_t y = 0; y < height; y++) {
		for (size_t x = 0; x < host_pitch; x++)
			REQUIRE(back[y * host_pitch + x] == (x < width ? value_at(x, y, 0) : 0xee));
	}
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
}

/* The middle of a plane, so that both sides have a pitch and an offset. */
static void
rectangle()
{
	const size_t pitch = 200, height = 50;
	std::vector<unsigned char> host(pitch * height, 0x44), back(pitch * height, 0x55);
	unsigned char *device = app_malloc<unsigned char>(pitch * height);

	for (size_t y = 0; y < 20; y++)
		for (size_t x = 0; x < 77; x++)
			host[(y + 5) * pitch + x + 9] = value_at(x, y, 2);
	CHECK(cudaMemset(device, 0x66, pitch * height));
	CHECK(cudaMemcpy2D(device + 11 * pitch + 13, pitch, &host[5 * pitch + 9], pitch, 77, 20,
			   cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(back.data(), device, back.size(), cudaMemcpyDeviceToHost));
	for (size_t y = 0; y < height; y++) {
		for (size_t x = 0; x < pitch; x++) {
			bool inside = y >= 11 && y < 31 && x >= 13 && x < 90;
			unsigned char expected = inside ? value_at(x - 13, y - 11, 2) : 0x66;
			REQUIRE(back[y * pitch + x] == expected);
		}
	}
	CHECK(cudaFree(device));
}

static std::vector<unsigned char>
make_volume(cudaExtent extent, size_t pitch)
{
	std::vector<unsigned char> host(pitch * extent.height * extent.depth, 0xaa);

	for (size_t z = 0; z < extent.depth; z++)
		for (size_t y = 0; y < extent.height; y++)
			for (size_t x = 0; x < extent.width; x++)
				host[(z * extent.height + y) * pitch + x] = value_at(x, y, z);
	return host;
}

static void
volumes(bool async)
{
	const cudaExtent extent = make_cudaExtent(123, 17, 9);
	const cudaExtent part = make_cudaExtent(50, 7, 4);
	const size_t pitch = 130;
	std::vector<unsigned char> host = make_volume(extent, pitch);
	std::vector<unsigned char> back(part.width * part.height * part.depth, 0);
	cudaPitchedPtr device;

	CHECK(cudaMalloc3D(&device, extent));
	REQUIRE(device.pitch >= extent.width && device.ysize == extent.height);

	cudaMemcpy3DParms up = {};
	up.srcPtr = make_cudaPitchedPtr(host.data(), pitch, extent.width, extent.height);
	up.dstPtr = device;
	up.extent = extent;
	up.kind = cudaMemcpyHostToDevice;
	cudaMemcpy3DParms down = {};
	down.srcPtr = device;
	down.srcPos = make_cudaPos(20, 5, 3);
	down.dstPtr = make_cudaPitchedPtr(back.data(), part.width, part.width, part.height);
	down.extent = part;
	down.kind = cudaMemcpyDefault;
	if (async) {
		CHECK(cudaMemcpy3DAsync(&up, 0));
		CHECK(cudaMemcpy3DAsync(&down, 0));
		CHECK(cudaDeviceSynchronize());
	} else {
		CHECK(cudaMemcpy3D(&up));
		CHECK(cudaMemcpy3D(&down));
	}
	for (size_t z = 0; z < part.depth; z++) {
		for (size_t y = 0; y < part.height; y++) {
			for (size_t x = 0; x < part.width; x++) {
				size_t at = (z * part.height + y) * part.width + x;
				REQUIRE(back[at] == value_at(x + 20, y + 5, z + 3));
			}
		}
	}
	CHECK(cudaFree(device.ptr));
}

/* Device to device, into a corner of another volume. */
static void
volume_to_volume()
{
	const cudaExtent extent = make_cudaExtent(64, 8, 6);
	std::vector<unsigned char> host = make_volume(extent, extent.width);
	std::vector<unsigned char> back(host.size());
	cudaPitchedPtr a, b;

	CHECK(cudaMalloc3D(&a, extent));
	CHECK(cudaMalloc3D(&b, extent));
	CHECK(cudaMemset3D(b, 0x5c, extent));
	cudaMemcpy3DParms copy = {};
	copy.srcPtr = make_cudaPitchedPtr(host.data(), extent.width, extent.width, extent.height);
	copy.dstPtr = a;
	copy.extent = extent;
	copy.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&copy));
	copy = {};
	copy.srcPtr = a;
	copy.dstPtr = b;
	copy.dstPos = make_cudaPos(32, 4, 3);
	copy.extent = make_cudaExtent(32, 4, 3);
	copy.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3D(&copy));
	copy = {};
	copy.srcPtr = b;
	copy.dstPtr = make_cudaPitchedPtr(back.data(), extent.width, extent.width, extent.height);
	copy.extent = extent;
	copy.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3D(&copy));
	for (size_t i = 0; i < back.size(); i++) {
		size_t x = i % 64, y = i / 64 % 8, z = i / 512;
		bool inside = x >= 32 && y >= 4 && z >= 3;
		REQUIRE(back[i] == (inside ? value_at(x - 32, y - 4, z - 3) : 0x5c));
	}
	CHECK(cudaFree(a.ptr));
	CHECK(cudaFree(b.ptr));
}

static void
misuse()
{
	unsigned char *device = app_malloc<unsigned char>(10000);
	std::vector<unsigned char> host(10000);

	/* A pitch that is smaller than the width. */
	EXPECT(cudaErrorInvalidPitchValue,
	       cudaMemcpy2D(device, 50, host.data(), 100, 100, 10, cudaMemcpyHostToDevice));
	/* An empty copy. */
	CHECK(cudaMemcpy2D(device, 100, host.data(), 100, 0, 10, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(device, 100, host.data(), 100, 10, 0, cudaMemcpyHostToDevice));
	CHECK(cudaFree(device));
}

int
main()
{
	planes(false);
	planes(true);
	rectangle();
	printf("pitched memory\n");
	volumes(false);
	volumes(true);
	volume_to_volume();
	printf("volumes\n");
	misuse();
	return app_ok("copies2d");
}
