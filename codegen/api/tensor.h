/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: tensor maps, the descriptors of tensor memory access. The words are defined in
 * vocabulary.h; codegen/README.md explains how to add a call. */

GP_LOCAL(VIA(gpTensorMap))
CUresult cuTensorMapEncodeTiled(
        BY_HOOK CUtensorMap *tensorMap,
        CUtensorMapDataType tensorDataType,
        cuuint32_t tensorRank,
        BY_HOOK void *globalAddress,
        BY_HOOK const cuuint64_t *globalDim,
        BY_HOOK const cuuint64_t *globalStrides,
        BY_HOOK const cuuint32_t *boxDim,
        BY_HOOK const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave,
        CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion,
        CUtensorMapFloatOOBfill oobFill);

GP_LOCAL(VIA(gpTensorMap))
CUresult cuTensorMapEncodeIm2col(
        BY_HOOK CUtensorMap *tensorMap,
        CUtensorMapDataType tensorDataType,
        cuuint32_t tensorRank,
        BY_HOOK void *globalAddress,
        BY_HOOK const cuuint64_t *globalDim,
        BY_HOOK const cuuint64_t *globalStrides,
        BY_HOOK const int *pixelBoxLowerCorner,
        BY_HOOK const int *pixelBoxUpperCorner,
        cuuint32_t channelsPerPixel,
        cuuint32_t pixelsPerColumn,
        BY_HOOK const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave,
        CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion,
        CUtensorMapFloatOOBfill oobFill);

GP_LOCAL(VIA(gpTensorMap))
CUresult cuTensorMapEncodeIm2colWide(
        BY_HOOK CUtensorMap *tensorMap,
        CUtensorMapDataType tensorDataType,
        cuuint32_t tensorRank,
        BY_HOOK void *globalAddress,
        BY_HOOK const cuuint64_t *globalDim,
        BY_HOOK const cuuint64_t *globalStrides,
        int pixelBoxLowerCornerWidth,
        int pixelBoxUpperCornerWidth,
        cuuint32_t channelsPerPixel,
        cuuint32_t pixelsPerColumn,
        BY_HOOK const cuuint32_t *elementStrides,
        CUtensorMapInterleave interleave,
        CUtensorMapIm2ColWideMode mode,
        CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion l2Promotion,
        CUtensorMapFloatOOBfill oobFill);

GP_LOCAL()
CUresult cuTensorMapReplaceAddress(
        BY_HOOK CUtensorMap *tensorMap,
        BY_HOOK void *globalAddress);
