/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: arrays, mipmapped arrays, and copies that accept arrays only. cuMemcpy2D* and
 * cuMemcpy3D* (copy.h) accept arrays, too. The words are defined in vocabulary.h; codegen/README.md
 * explains how to add a call. */

GP_LOCAL(VIA(gpArrayCreate))
CUresult cuArrayCreate_v2(
        OUT CUarray *pHandle,
        IN const CUDA_ARRAY_DESCRIPTOR *pAllocateArray);

GP_LOCAL(VIA(gpArrayCreate))
CUresult cuArray3DCreate_v2(
        OUT CUarray *pHandle,
        IN const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray);

GP_LOCAL(VIA(gpArrayDestroy), SYNCHRONIZES(CURRENT))
CUresult cuArrayDestroy(
        CUarray hArray);

GP_LOCAL()
CUresult cuArrayGetDescriptor_v2(
        OUT COMPUTE(gpc_array_get_descriptor) CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor,
        CUarray hArray);

GP_LOCAL()
CUresult cuArray3DGetDescriptor_v2(
        OUT COMPUTE(gpc_array_get_descriptor_3d) CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor,
        CUarray hArray);

/* For arrays whose memory the application maps (deferred mapping). gpupool creates none. */
GP_LOCAL(RETURNS(CUDA_ERROR_INVALID_VALUE))
CUresult cuArrayGetMemoryRequirements(
        OUT CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
        CUarray array,
        CUdevice device);

/* gpupool creates no planar arrays. */
GP_LOCAL(RETURNS(CUDA_ERROR_INVALID_VALUE))
CUresult cuArrayGetPlane(
        OUT CUarray *pPlaneArray,
        CUarray hArray,
        unsigned int planeIdx);

GP_LOCAL(VIA(gpArrayTiling))
CUresult cuArrayGetSparseProperties(
        OUT CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
        CUarray array);

GP_LOCAL(VIA(gpArrayTiling))
CUresult cuMipmappedArrayGetSparseProperties(
        OUT CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
        CUmipmappedArray mipmap);

GP_LOCAL(VIA(gpArrayCreate))
CUresult cuMipmappedArrayCreate(
        OUT CUmipmappedArray *pHandle,
        IN const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
        unsigned int numMipmapLevels);

GP_LOCAL(VIA(gpArrayDestroy), SYNCHRONIZES(CURRENT))
CUresult cuMipmappedArrayDestroy(
        CUmipmappedArray hMipmappedArray);

GP_LOCAL()
CUresult cuMipmappedArrayGetLevel(
        OUT CUarray *pLevelArray,
        CUmipmappedArray hMipmappedArray,
        unsigned int level);

GP_LOCAL(RETURNS(CUDA_ERROR_INVALID_VALUE))
CUresult cuMipmappedArrayGetMemoryRequirements(
        OUT CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
        CUmipmappedArray mipmap,
        CUdevice device);

/* Maps memory that was created with CU_MEM_CREATE_USAGE_TILE_POOL (gpTilePoolCreate). */
GP_LOCAL(VIA(gpArrayTiles), CAPTURE(refused))
CUresult cuMemMapArrayAsync(
        BY_HOOK CUarrayMapInfo *mapInfoList,
        unsigned int count,
        CUstream hStream);

GP_LOCAL(VIA(gpArrayCopyIn))
CUresult cuMemcpyHtoA_v2(
        CUarray dstArray,
        size_t dstOffset,
        BY_HOOK const void *srcHost,
        size_t ByteCount);

GP_LOCAL(VIA(gpArrayCopyIn), CAPTURE(refused))
CUresult cuMemcpyHtoAAsync_v2(
        CUarray dstArray,
        size_t dstOffset,
        BY_HOOK const void *srcHost,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(VIA(gpArrayCopyOut))
CUresult cuMemcpyAtoH_v2(
        BY_HOOK void *dstHost,
        CUarray srcArray,
        size_t srcOffset,
        size_t ByteCount);

GP_LOCAL(VIA(gpArrayCopyOut), CAPTURE(refused))
CUresult cuMemcpyAtoHAsync_v2(
        BY_HOOK void *dstHost,
        CUarray srcArray,
        size_t srcOffset,
        size_t ByteCount,
        CUstream hStream);

GP_LOCAL(VIA(gpArrayCopy))
CUresult cuMemcpyDtoA_v2(
        CUarray dstArray,
        size_t dstOffset,
        CUdeviceptr srcDevice,
        size_t ByteCount);

GP_LOCAL(VIA(gpArrayCopy))
CUresult cuMemcpyAtoD_v2(
        CUdeviceptr dstDevice,
        CUarray srcArray,
        size_t srcOffset,
        size_t ByteCount);

GP_LOCAL(VIA(gpArrayCopy))
CUresult cuMemcpyAtoA_v2(
        CUarray dstArray,
        size_t dstOffset,
        CUarray srcArray,
        size_t srcOffset,
        size_t ByteCount);

/*
 * Creates a plain array (levels 0) or a mipmapped array, and zeroes it before its first use. The
 * driver pads arrays, so only the daemon knows the size in device memory.
 */
GP_MESSAGE(0x0281, WAIT, SERVER_HOOK, ALLOCATES(BY_HOOK), NO_DTOH_WAIT)
void gpArrayCreate(
        NEW gp_array array,
        int device,
        size_t width,
        size_t height,
        size_t depth,
        unsigned int format,
        unsigned int channels,
        unsigned int flags,
        unsigned int levels);

/* Creates an array from the allowance, without a reply. The charge is gp_array_get_footprint(). */
GP_MESSAGE(0x0285, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpArrayMake(
        NEW gp_array array,
        int device,
        size_t width,
        size_t height,
        size_t depth,
        unsigned int format,
        unsigned int channels,
        unsigned int flags,
        unsigned int levels);

/* Destroys the array after all work submitted before, and after the last texture or surface object
 * of it. */
GP_MESSAGE(0x0282, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpArrayDestroy(
        DROP gp_array array);

/* Returns the tile layout of a sparse array: a struct gp_array_tiling (protocol/array_tiles.h). */
GP_MESSAGE(0x0283, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpArrayTiling(
        gp_array array,
        OUT_BYTES(32) void *tiling);

/* Maps or unmaps memory in parts of sparse arrays, in stream order. tiles: array of struct
 * gp_array_tiles. */
GP_MESSAGE(0x0284, WAIT, SERVER_HOOK, LAUNCHES)
void gpArrayTiles(
        CUstream stream,
        IN_BYTES(tiles_size) const void *tiles,
        size_t tiles_size);

/* Creates memory that only sparse arrays can map; otherwise equal to gpMemoryCreate. */
GP_MESSAGE(0x021a, WAIT, SERVER_HOOK, ALLOCATES(size))
void gpTilePoolCreate(
        NEW gp_memory memory,
        size_t size,
        int device);

/* Host to array: a packed box of depth slices of height rows of width bytes, in the bulk tail.
 * flags: see gpCopyIn. */
GP_MESSAGE(0x0381, POST, SERVER_HOOK, BULK_IN, COPIES(BY_HOOK), BARRIER(flags), NO_DTOH_WAIT, WRITES_DEVICE_ONLY, TRACE_NAME("copy to the device"))
void gpArrayCopyIn(
        CUstream stream,
        gp_array array,
        unsigned int level,
        size_t x,
        size_t y,
        size_t z,
        size_t width,
        size_t height,
        size_t depth,
        unsigned int flags);

/* Array to host: the daemon sends the packed box in data notes, in order, then the reply. */
GP_MESSAGE(0x0382, WAIT, SERVER_HOOK, BULK_OUT, COPIES(BY_HOOK), NO_DTOH_WAIT, TRACE_NAME("copy from the device"))
void gpArrayCopyOut(
        CUstream stream,
        gp_array array,
        unsigned int level,
        size_t x,
        size_t y,
        size_t z,
        size_t width,
        size_t height,
        size_t depth);

/* Device copy between two arrays, or between an array and memory. If a side has an array, x, y and
 * z are the position of its first byte there, and address, pitch and slice are 0; otherwise x, y
 * and z are 0. */
GP_MESSAGE(0x0383, POST, SERVER_HOOK, LAUNCHES, NO_DTOH_WAIT, TRACE_NAME("copy on the device"))
void gpArrayCopy(
        CUstream stream,
        gp_array dst_array,
        unsigned int dst_level,
        size_t dst_x,
        size_t dst_y,
        size_t dst_z,
        gp_address dst,
        size_t dst_pitch,
        size_t dst_slice,
        gp_array src_array,
        unsigned int src_level,
        size_t src_x,
        size_t src_y,
        size_t src_z,
        gp_address src,
        size_t src_pitch,
        size_t src_slice,
        size_t width,
        size_t height,
        size_t depth);
