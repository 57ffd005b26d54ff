/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory use of arrays of various shapes, measured by cudaMemGetInfo(): prints the MiB that a
 * number of equal arrays use together. On a local GPU this is the driver's use, through a daemon
 * with a quota it is the charged memory.
 */
#include "app.h"

static size_t
free_memory()
{
	size_t available, total;

	CHECK(cudaMemGetInfo(&available, &total));
	return available;
}

template <typename T>
static void
measure(const char *name, int count, size_t width, size_t height, size_t depth, unsigned int flags,
	unsigned int levels = 0)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
	const cudaExtent extent = make_cudaExtent(width, height, depth);
	const size_t before = free_memory();

	/* All arrays exist until the end, so that none reuses the memory of another. */
	for (int i = 0; i < count; i++) {
		cudaMipmappedArray_t mipmap;
		cudaArray_t array;

		if (levels)
			CHECK(cudaMallocMipmappedArray(&mipmap, &format, extent, levels, flags));
		else
			CHECK(cudaMalloc3DArray(&array, &format, extent, flags));
	}
	printf("%d %s: %.3f\n", count, name, (double)(before - free_memory()) / (1 << 20));
}

int
main()
{
	CHECK(cudaFree(nullptr));
	measure<float>("1D of 100000", 64, 100000, 0, 0, 0);
	measure<unsigned char>("1D of 100 bytes", 256, 100, 0, 0, 0);
	measure<float>("16 x 16", 256, 16, 16, 0, 0);
	measure<float>("100 x 100", 256, 100, 100, 0, 0);
	measure<float4>("200 x 200 float4", 32, 200, 200, 0, 0);
	measure<float>("400 x 400", 64, 400, 400, 0, 0);
	measure<float>("500 x 1000", 16, 500, 1000, 0, 0);
	measure<float>("1000 x 1000", 16, 1000, 1000, 0, 0);
	measure<unsigned char>("1025 x 1025 bytes", 16, 1025, 1025, 0, 0);
	measure<float4>("1000 x 33 float4", 16, 1000, 33, 0, 0);
	measure<float>("10000 x 10", 16, 10000, 10, 0, 0);
	measure<float>("10 x 10000", 16, 10, 10000, 0, 0);
	measure<float>("64 x 64 x 64", 16, 64, 64, 64, 0);
	measure<float>("100 x 100 x 100", 16, 100, 100, 100, 0);
	measure<float>("33 x 33 x 33", 64, 33, 33, 33, 0);
	measure<float>("100 x 100, 20 layers", 16, 100, 100, 20, cudaArrayLayered);
	measure<float>("1000, 50 layers", 16, 1000, 0, 50, cudaArrayLayered);
	measure<float>("cube map of 100", 16, 100, 100, 6, cudaArrayCubemap);
	measure<float>("1000 x 1000 for surfaces", 16, 1000, 1000, 0, cudaArraySurfaceLoadStore);
	measure<float>("1000 x 1000, all levels", 16, 1000, 1000, 0, 0, 10);
	measure<float>("100 x 100, all levels", 64, 100, 100, 0, 0, 7);
	measure<float>("64 x 64 x 64, all levels", 16, 64, 64, 64, 0, 7);
	return app_ok("arraysizes");
}
