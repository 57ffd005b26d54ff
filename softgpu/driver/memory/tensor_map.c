/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps: packed fields. The first word is the address, as in NVIDIA's format; no instruction
 * of the engine reads a map. The checks are those of CUDA's documentation.
 */
#include "softgpu/driver/driver.h"

#include <string.h>

enum {
	RANK_MAX = 5,
	BOX_MAX = 256,
	STEP_MAX = 8,
	CORNER_MAX = 1 << 15,
};

struct fields {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *steps;
	CUtensorMapInterleave interleave;
	unsigned int rest[4]; /* swizzle, promotion, fill, mode */
	unsigned int rank_min;
};

static bool
sizes_ok(const struct fields *f, unsigned int alignment)
{
	for (cuuint32_t i = 0; i < f->rank; i++) {
		if (f->dims[i] == 0 || f->dims[i] > 1ULL << 32 || f->steps[i] == 0 ||
		    f->steps[i] > STEP_MAX)
			return false;
		if (i + 1 < f->rank && (f->strides[i] % alignment || f->strides[i] >= 1ULL << 40))
			return false;
	}
	return true;
}

/* Words 0 to 11; the others depend on the kind. */
static CUresult
encode(CUtensorMap *map, const struct fields *f)
{
	unsigned int alignment = f->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
	cuuint64_t *word = map ? map->opaque : NULL;

	if (!map || (uintptr_t)map % 64 || !f->address || (uintptr_t)f->address % alignment ||
	    !f->dims || !f->strides || !f->steps || f->rank < f->rank_min || f->rank > RANK_MAX ||
	    (unsigned int)f->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B ||
	    (unsigned int)f->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
	    (f->interleave != CU_TENSOR_MAP_INTERLEAVE_NONE && f->rank < 3) ||
	    !sizes_ok(f, alignment))
		return CUDA_ERROR_INVALID_VALUE;
	memset(map, 0, sizeof(*map));
	word[0] = (uintptr_t)f->address;
	word[1] = (cuuint64_t)f->type | (cuuint64_t)f->rank << 8 | (cuuint64_t)f->interleave << 16;
	for (int i = 0; i < 4; i++)
		word[1] |= (cuuint64_t)(f->rest[i] & 0xff) << (24 + 8 * i);
	for (cuuint32_t i = 0; i < f->rank; i++) {
		word[2 + i] = f->dims[i];
		word[11] |= (cuuint64_t)f->steps[i] << (8 * i);
		if (i + 1 < f->rank)
			word[7 + i] = f->strides[i];
	}
	return CUDA_SUCCESS;
}

#define FIELDS(least, mode)                                                                        \
	{                                                                                          \
		type, rank, address, dims, strides, steps, interleave,                             \
			{ (unsigned int)swizzle, (unsigned int)l2, (unsigned int)fill,             \
			  (unsigned int)(mode) },                                                  \
			least                                                                      \
	}

CUresult
cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
		       const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
		       const cuuint32_t *steps, CUtensorMapInterleave interleave,
		       CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
		       CUtensorMapFloatOOBfill fill)
{
	struct fields fields = FIELDS(1, 0);
	CUresult result = box ? encode(map, &fields) : CUDA_ERROR_INVALID_VALUE;

	for (cuuint32_t i = 0; result == CUDA_SUCCESS && i < rank; i++) {
		if (box[i] == 0 || box[i] > BOX_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		map->opaque[12 + i / 3] |= (cuuint64_t)box[i] << (16 * (i % 3));
	}
	return result;
}

static CUresult
corners(CUtensorMap *map, int index, int lower, int upper)
{
	if (lower < -CORNER_MAX || lower >= CORNER_MAX || upper < -CORNER_MAX ||
	    upper >= CORNER_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	map->opaque[12] |= (cuuint64_t)(uint16_t)lower << (16 * index);
	map->opaque[13] |= (cuuint64_t)(uint16_t)upper << (16 * index);
	return CUDA_SUCCESS;
}

CUresult
cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
			const cuuint64_t *dims, const cuuint64_t *strides, const int *lower,
			const int *upper, cuuint32_t channels, cuuint32_t pixels,
			const cuuint32_t *steps, CUtensorMapInterleave interleave,
			CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
			CUtensorMapFloatOOBfill fill)
{
	struct fields fields = FIELDS(3, 0);
	CUresult result = lower && upper ? encode(map, &fields) : CUDA_ERROR_INVALID_VALUE;

	for (cuuint32_t i = 0; result == CUDA_SUCCESS && i + 2 < rank; i++)
		result = corners(map, (int)i, lower[i], upper[i]);
	if (result == CUDA_SUCCESS)
		map->opaque[14] = (cuuint64_t)channels << 32 | pixels;
	return result;
}

CUresult
cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
			    void *address, const cuuint64_t *dims, const cuuint64_t *strides,
			    int lower, int upper, cuuint32_t channels, cuuint32_t pixels,
			    const cuuint32_t *steps, CUtensorMapInterleave interleave,
			    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
			    CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill)
{
	struct fields fields = FIELDS(3, mode);
	CUresult result = encode(map, &fields);

	if (result == CUDA_SUCCESS)
		result = corners(map, 0, lower, upper);
	if (result == CUDA_SUCCESS)
		map->opaque[14] = (cuuint64_t)channels << 32 | pixels;
	return result;
}
