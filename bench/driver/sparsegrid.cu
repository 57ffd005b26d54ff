/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sparsegrid: sparse arrays that NVIDIA's driver accepts, natively, and their tiling: by format,
 * channels, extent and flags, each plain and with four levels.
 */
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

static const struct {
	const char *name;
	unsigned flags;
} kinds[] = {
	{ "plain", 0 },
	{ "surface", CUDA_ARRAY3D_SURFACE_LDST },
	{ "layered", CUDA_ARRAY3D_LAYERED },
	{ "layered surface", CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST },
	{ "cube", CUDA_ARRAY3D_CUBEMAP },
	{ "gather", CUDA_ARRAY3D_TEXTURE_GATHER },
};
static const size_t extents[][3] = {
	{ 1024, 0, 0 },   { 64, 64, 0 },  { 300, 200, 0 }, { 1024, 1024, 0 }, { 1024, 1024, 1 },
	{ 1024, 512, 3 }, { 40, 40, 40 }, { 64, 64, 64 },  { 1024, 1024, 6 }, { 1024, 1024, 64 },
};
static const CUarray_format formats[] = { CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT8,
					  CU_AD_FORMAT_FLOAT };

static void
print(const char *what, CUresult made, CUresult asked, const CUDA_ARRAY_SPARSE_PROPERTIES &is)
{
	printf("  %s: %d", what, made);
	if (made == CUDA_SUCCESS)
		printf(", %d: tile %u by %u by %u, tail from %u, %llu bytes, flags %u", asked,
		       is.tileExtent.width, is.tileExtent.height, is.tileExtent.depth,
		       is.miptailFirstLevel, is.miptailSize, is.flags);
	printf("\n");
}

static void
try_both(const CUDA_ARRAY3D_DESCRIPTOR &described)
{
	CUDA_ARRAY_SPARSE_PROPERTIES properties = {};
	CUmipmappedArray mipmap;
	CUarray array;
	CUresult made = cuArray3DCreate(&array, &described), asked = CUDA_SUCCESS;

	if (made == CUDA_SUCCESS) {
		asked = cuArrayGetSparseProperties(&properties, array);
		cuArrayDestroy(array);
	}
	print("array", made, asked, properties);
	made = cuMipmappedArrayCreate(&mipmap, &described, 4);
	if (made == CUDA_SUCCESS) {
		asked = cuMipmappedArrayGetSparseProperties(&properties, mipmap);
		cuMipmappedArrayDestroy(mipmap);
	}
	print("levels", made, asked, properties);
}

int
main()
{
	if (cudaSetDevice(0) != cudaSuccess || cudaFree(NULL) != cudaSuccess) {
		fprintf(stderr, "sparsegrid: there is no GPU\n");
		return 1;
	}
	for (CUarray_format format : formats) {
		for (unsigned channels = 1; channels <= 4; channels++) {
			for (const auto &kind : kinds) {
				for (const auto &extent : extents) {
					CUDA_ARRAY3D_DESCRIPTOR described = {};

					described.Width = extent[0];
					described.Height = extent[1];
					described.Depth = extent[2];
					described.Format = format;
					described.NumChannels = channels;
					described.Flags = kind.flags | CUDA_ARRAY3D_SPARSE;
					printf("format %d, %u channels, %zu by %zu by %zu, %s\n",
					       (int)format, channels, extent[0], extent[1],
					       extent[2], kind.name);
					try_both(described);
				}
			}
		}
	}
	return 0;
}
