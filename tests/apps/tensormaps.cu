/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: encoded, passed to a kernel, and changed to other addresses; and rejected
 * arguments. */
#include "app.h"

#include <cuda.h>

/* As a kernel parameter. */
static __global__ void
copy_words(const __grid_constant__ CUtensorMap map, unsigned long long *out)
{
	const unsigned long long *words = reinterpret_cast<const unsigned long long *>(&map);

	out[threadIdx.x] = words[threadIdx.x];
}

template <typename F>
static F *
driver_function(const char *name)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
	REQUIRE(found == cudaDriverEntryPointSuccess);
	return reinterpret_cast<F *>(function);
}

static decltype(cuTensorMapEncodeTiled) *tiled;

struct shape {
	cuuint32_t rank = 2;
	cuuint64_t dims[5] = { 64, 32, 8, 4, 2 };
	cuuint64_t strides[4] = { 256, 8192, 65536, 262144 };
	cuuint32_t box[5] = { 16, 8, 1, 1, 1 };
	cuuint32_t steps[5] = { 1, 1, 1, 1, 1 };

	CUresult encode(CUtensorMap *map, void *address,
			CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) const
	{
		return tiled(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, address, dims, strides,
			     box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
			     CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	}
};

static bool
same(const CUtensorMap &a, const CUtensorMap &b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

#define REFUSED(call) REQUIRE((call) == CUDA_ERROR_INVALID_VALUE)

static void
refusals(float *data)
{
	CUtensorMap map[2];
	shape shape;

	/* The driver does not require the alignment of the type. */
	REQUIRE(shape.encode(reinterpret_cast<CUtensorMap *>(reinterpret_cast<char *>(map) + 8),
			     data) == CUDA_SUCCESS);
	REFUSED(shape.encode(nullptr, data));
	REQUIRE(shape.encode(map, nullptr) == CUDA_SUCCESS);
	REFUSED(shape.encode(map, data + 1));
	shape.rank = 0;
	REFUSED(shape.encode(map, data));
	shape.rank = 6;
	REFUSED(shape.encode(map, data));
	shape = {};
	shape.dims[1] = 0;
	REFUSED(shape.encode(map, data));
	shape = {};
	shape.strides[0] = 250;
	REFUSED(shape.encode(map, data));
	shape = {};
	shape.box[0] = 257;
	REFUSED(shape.encode(map, data));
	shape = {};
	shape.steps[0] = 9;
	REFUSED(shape.encode(map, data));
}

int
main()
{
	auto *im2col =
		driver_function<decltype(cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
	auto *replace =
		driver_function<decltype(cuTensorMapReplaceAddress)>("cuTensorMapReplaceAddress");
	const int lower[] = { -1, -1 }, upper[] = { 1, 1 };
	unsigned long long *seen, words[16];
	CUtensorMap map, other, moved;
	float *data;
	shape shape;

	tiled = driver_function<decltype(cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
	CHECK(cudaMalloc(&data, 2 << 20));
	CHECK(cudaMalloc(&seen, sizeof(words)));
	app_skip_unless_supported(shape.encode(&map, data) == CUDA_ERROR_NOT_SUPPORTED
					  ? cudaErrorNotSupported
					  : cudaSuccess,
				  "tensor maps");

	REQUIRE(shape.encode(&map, data) == CUDA_SUCCESS);
	REQUIRE(map.opaque[0] == reinterpret_cast<cuuint64_t>(data));
	copy_words<<<1, 16>>>(map, seen);
	CHECK(cudaMemcpy(words, seen, sizeof(words), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 16; i++)
		if (words[i] != map.opaque[i])
			printf("word %d: %llx in the kernel, %llx\n", i, words[i],
			       (unsigned long long)map.opaque[i]);
	REQUIRE(memcmp(words, &map, sizeof(words)) == 0);

	/* Encoding another address and replacing the address later result in the same map. */
	REQUIRE(shape.encode(&other, data + 1024) == CUDA_SUCCESS);
	REQUIRE(!same(map, other));
	moved = map;
	REQUIRE(replace(&moved, data + 1024) == CUDA_SUCCESS);
	REQUIRE(same(moved, other));
	REQUIRE(shape.encode(&other, data) == CUDA_SUCCESS);
	REQUIRE(same(map, other));

	/* Another shape results in another map. */
	REQUIRE(shape.encode(&other, data, CU_TENSOR_MAP_SWIZZLE_64B) == CUDA_SUCCESS);
	REQUIRE(!same(map, other));
	shape.rank = 5;
	REQUIRE(shape.encode(&other, data) == CUDA_SUCCESS);
	REQUIRE(!same(map, other));
	REQUIRE(im2col(&moved, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, data, shape.dims, shape.strides,
		       lower, upper, 16, 8, shape.steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		       CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
	REQUIRE(moved.opaque[0] == reinterpret_cast<cuuint64_t>(data));
	REQUIRE(!same(moved, other));

	refusals(data);
	REQUIRE(replace(&map, nullptr) == CUDA_ERROR_INVALID_VALUE);
	REQUIRE(replace(&map, data + 1) == CUDA_ERROR_INVALID_VALUE);
	CHECK(cudaFree(seen));
	CHECK(cudaFree(data));
	return app_ok("tensormaps");
}
