/* SPDX-License-Identifier: Apache-2.0 */
/* gpupool's own messages: what the hand-written calls of client/ are made of.  Units are bytes. */

/* A context of the application: primary or made by cuCtxCreate.  legacy names its NULL stream.
 * heap_size bytes are mapped at heap for the client to cut small allocations from (0: none). */
GP_MESSAGE(0x0101, WAIT, SERVER_HOOK, ALLOCATES(heap_size), PASSES_COPIES)
void gpContextCreate(
        NEW gp_context context,
        int device,
        unsigned int flags,
        NEW CUstream legacy,
        gp_new_address heap,
        size_t heap_size);

/* Streams and events of the context go with it; images and memory stay until the client drops them. */
GP_MESSAGE(0x0102, POST, SERVER_HOOK, BEHIND_ALL, BEFORE_ALL)
void gpContextDestroy(
        DROP gp_context context);

/* cuCtxSynchronize: answered when all that the session submitted to this context so far is done. */
GP_MESSAGE(0x0103, WAIT, SERVER_HOOK, BEHIND_ALL)
void gpContextSynchronize(
        gp_context context);

/* cuCtxSetLimit: the worker's limits are shared; they only grow (stack) or are given (the others). */
GP_MESSAGE(0x0104, WAIT, SERVER_HOOK)
void gpContextSetLimit(
        gp_context context,
        int limit,
        size_t value);

/* Maps fresh zeroed memory of a device; address and size are multiples of the granularity. */
GP_MESSAGE(0x0201, WAIT, SERVER_HOOK, ALLOCATES(size), PASSES_COPIES)
void gpMemoryMap(
        gp_new_address address,
        size_t size,
        int device);

/* Unmaps what one gpMemoryMap (or gpContextCreate) mapped, once all work submitted before is done. */
GP_MESSAGE(0x0202, POST, SERVER_HOOK, FREES(BY_HOOK), BEHIND_ALL)
void gpMemoryUnmap(
        gp_address address,
        size_t size);

/* cuMemGetInfo: of the session's quota on this device. */
GP_MESSAGE(0x0203, WAIT, SERVER_HOOK, ABOUT_MEMORY, PASSES_COPIES)
void gpMemoryInfo(
        int device,
        OUT unsigned long long *free,
        OUT unsigned long long *total);

/* Answered when all that the session submitted so far, to any stream, is done. */
GP_MESSAGE(0x0204, WAIT, SERVER_HOOK, BEHIND_ALL)
void gpFence(void);

/* Physical memory of a device, zeroed before it is first seen; size is a multiple of the granularity. */
GP_MESSAGE(0x0205, WAIT, SERVER_HOOK, ALLOCATES(size))
void gpMemoryCreate(
        NEW gp_memory memory,
        size_t size,
        int device);

/* It is mapped nowhere. */
GP_MESSAGE(0x0206, POST, SERVER_HOOK, FREES(BY_HOOK))
void gpMemoryRelease(
        DROP gp_memory memory);

/* Maps the first size bytes of physical memory, readable and writable, where nothing is mapped;
 * gpMemoryUnmap undoes it. */
GP_MESSAGE(0x0207, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryAttach(
        gp_memory memory,
        gp_address address,
        size_t size);

/* The same, and nobody waits: of the whole of it, which is what a driver maps. */
GP_MESSAGE(0x020c, POST, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryPlace(
        gp_memory memory,
        gp_address address,
        size_t size);

/* Addresses besides the window's, for the client to map memory at. */
GP_MESSAGE(0x0208, WAIT, SERVER_HOOK)
void gpAddressReserve(
        size_t size,
        OUT unsigned long long *address);

/* Nothing is mapped there but what has been unmapped before. */
GP_MESSAGE(0x0209, POST, SERVER_HOOK)
void gpAddressFree(
        gp_address address);

/*
 * The client keeps memory that nothing uses, and may do so until this is answered: somebody else
 * needs it.  One at a time.
 */
GP_MESSAGE(0x020a, WAIT, SERVER_HOOK, PASSES_COPIES)
void gpMemoryKeep(void);

/* After that answer: what was kept has been given back. */
GP_MESSAGE(0x020b, POST, SERVER_HOOK, BEHIND_ALL)
void gpMemoryKept(void);

/* Host to device: height rows of width bytes, packed, in the bulk tail.  flags: GP_COPY_BARRIER
 * makes all later work of the session, on every stream, wait for this copy (synchronous copies). */
GP_MESSAGE(0x0301, POST, SERVER_HOOK, BULK_IN, COPIES(BY_HOOK), BARRIER(flags), PASSES_COPIES)
void gpCopyIn(
        CUstream stream,
        gp_address dst,
        size_t pitch,
        size_t width,
        size_t height,
        unsigned int flags);

/* The same, of few bytes: they are part of the record, so that many go in one message. */
GP_MESSAGE(0x0305, POST, SERVER_HOOK, COPIES(BY_HOOK), BARRIER(flags), PASSES_COPIES)
void gpCopyInShort(
        CUstream stream,
        gp_address dst,
        size_t pitch,
        size_t width,
        size_t height,
        unsigned int flags,
        IN_BYTES(size) const void *data,
        size_t size);

/* Device to host: the rows come back packed in data notes, in order, then the reply. */
GP_MESSAGE(0x0302, WAIT, SERVER_HOOK, BULK_OUT, COPIES(BY_HOOK), PASSES_COPIES)
void gpCopyOut(
        CUstream stream,
        gp_address src,
        size_t pitch,
        size_t width,
        size_t height);

GP_MESSAGE(0x0303, POST, SERVER_HOOK, LAUNCHES, PASSES_COPIES)
void gpCopyDevice(
        CUstream stream,
        gp_address dst,
        size_t dst_pitch,
        size_t dst_slice,
        gp_address src,
        size_t src_pitch,
        size_t src_slice,
        size_t width,
        size_t height,
        size_t depth);

/* cuMemset*: height rows of width elements of element_size (1, 2, 4) bytes; pitch in bytes. */
GP_MESSAGE(0x0304, POST, SERVER_HOOK, LAUNCHES, PASSES_COPIES)
void gpFill(
        CUstream stream,
        gp_address dst,
        size_t pitch,
        unsigned int element_size,
        unsigned int value,
        size_t width,
        size_t height);

/* Host to device: size bytes that come in chunks on the data lanes (wire.md, 7).  copy: how many
 * of these calls the session has made, this one included. */
GP_MESSAGE(0x0311, POST, SERVER_HOOK, COPIES(BY_HOOK), PASSES_COPIES)
void gpCopyInLanes(
        CUstream stream,
        gp_address dst,
        size_t size,
        unsigned int flags,
        unsigned int copy);

/* Device to host: size bytes that come back in chunks of this copy on the data lanes; sent: how
 * many of them. */
GP_MESSAGE(0x0312, WAIT, SERVER_HOOK, COPIES(BY_HOOK), PASSES_COPIES)
void gpCopyOutLanes(
        CUstream stream,
        gp_address src,
        size_t size,
        unsigned int copy,
        OUT unsigned long long *sent);

/*
 * A host function behind the stream's work: the daemon says when its turn has come (note 0xff05),
 * the client runs it and answers with gpHostFunctionDone.  Until then what comes behind it in the
 * stream, or waits for that, is kept by the daemon and not given to the GPU.
 */
GP_MESSAGE(0x0421, POST, SERVER_HOOK, CHARGES_NOTHING)
void gpHostFunction(
        CUstream stream,
        NEW gp_function function);

GP_MESSAGE(0x0422, POST, SERVER_HOOK)
void gpHostFunctionDone(
        DROP gp_function function);

/*
 * Loads device code: the flattened image (image/fatbin.h) of this SHA-256.  The image itself is
 * the bulk tail; without one it must be in the daemon's cache, else missing = 1 comes back and the
 * client sends the call again with it.  options: (u32 CUjit_option, u32 0, u64 value) triples.
 * info: the kernels (protocol/image_info.h); log: text of the JIT compiler, also when it fails.
 */
GP_MESSAGE(0x0501, WAIT, SERVER_HOOK, BULK_IN, ALLOCATES(BY_HOOK), PASSES_COPIES)
void gpImageLoad(
        gp_context context,
        NEW gp_image image,
        IN_BYTES(32) const void *sha256,
        size_t size,
        IN_BYTES(options_size) const void *options,
        size_t options_size,
        OUT unsigned int *missing,
        OUT_BYTES(BY_HOOK) void *info,
        OUT_BYTES(BY_HOOK) void *log);

/*
 * The same, without waiting, of an image that Welcome names as known for the device of the context.
 * Each can be loaded so once; its kernels are those that Welcome tells of.
 */
GP_MESSAGE(0x0504, POST, SERVER_HOOK, ALLOCATES(BY_HOOK), PASSES_COPIES)
void gpImageUse(
        gp_context context,
        NEW gp_image image,
        IN_BYTES(32) const void *sha256);

GP_MESSAGE(0x0502, POST, SERVER_HOOK, FREES(BY_HOOK), BEHIND_ALL)
void gpImageUnload(
        DROP gp_image image);

/* A variable of the image on the context's device; its address lies outside the window. */
GP_MESSAGE(0x0503, WAIT, SERVER_HOOK, PASSES_COPIES)
void gpImageGlobal(
        gp_context context,
        gp_image image,
        IN_STRING const char *name,
        OUT unsigned long long *address,
        OUT unsigned long long *size);

/*
 * A launch.  kernel: image and index of the function; attributes: (u32 CUlaunchAttributeID, u32 0,
 * 64 bytes of value) each; params: the packed parameter buffer.
 */
GP_MESSAGE(0x0601, POST, SERVER_HOOK, LAUNCHES, PASSES_COPIES)
void gpLaunch(
        gp_kernel kernel,
        unsigned int grid_x,
        unsigned int grid_y,
        unsigned int grid_z,
        unsigned int block_x,
        unsigned int block_y,
        unsigned int block_z,
        unsigned int shared,
        CUstream stream,
        IN_BYTES(attributes_size) const void *attributes,
        size_t attributes_size,
        IN_BYTES(params_size) const void *params,
        size_t params_size);

/* The same, answered with the result of the launch: a cooperative or cluster launch of a shape that has
 * not been accepted before, CUDA_LAUNCH_BLOCKING. */
GP_MESSAGE(0x0602, WAIT, SERVER_HOOK, LAUNCHES, PASSES_COPIES)
void gpLaunchChecked(
        gp_kernel kernel,
        unsigned int grid_x,
        unsigned int grid_y,
        unsigned int grid_z,
        unsigned int block_x,
        unsigned int block_y,
        unsigned int block_z,
        unsigned int shared,
        CUstream stream,
        IN_BYTES(attributes_size) const void *attributes,
        size_t attributes_size,
        IN_BYTES(params_size) const void *params,
        size_t params_size);

/* cuFuncSetAttribute of what the client has found to be right; also of a value that the kernel has. */
GP_MESSAGE(0x0604, POST, SERVER_HOOK, PASSES_COPIES)
void gpFunctionAttribute(
        gp_kernel kernel,
        int attribute,
        int value);

/* From now on the note 0xff06 tells when the session's share of a device has changed. */
GP_MESSAGE(0x0605, POST, SERVER_HOOK, PASSES_COPIES)
void gpShareWatch(void);

/* cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags for up to 64 block sizes: questions of 16 bytes
 * (u32 size, u32 0, u64 dynamic shared memory), answered by a u32 each. */
GP_MESSAGE(0x0606, WAIT, SERVER_HOOK, PASSES_COPIES)
void gpOccupancyBlocks(
        gp_kernel kernel,
        unsigned int flags,
        IN_BYTES(questions_size) const void *questions,
        size_t questions_size,
        OUT_BYTES(BY_HOOK) void *blocks);

/* Occupancy of clusters: config as in gpLaunch; what: 0 cuOccupancyMaxPotentialClusterSize,
 * 1 cuOccupancyMaxActiveClusters. */
GP_MESSAGE(0x0603, WAIT, SERVER_HOOK, PASSES_COPIES)
void gpOccupancyCluster(
        unsigned int what,
        gp_kernel kernel,
        unsigned int grid_x,
        unsigned int grid_y,
        unsigned int grid_z,
        unsigned int block_x,
        unsigned int block_y,
        unsigned int block_z,
        unsigned int shared,
        IN_BYTES(attributes_size) const void *attributes,
        size_t attributes_size,
        OUT int *value);

/* A tensor map as the driver encodes it on the context's device.  shape: struct gp_tensor_shape
 * (protocol/tensor_shape.h). */
GP_MESSAGE(0x0901, WAIT, SERVER_HOOK, PASSES_COPIES)
void gpTensorMap(
        gp_context context,
        IN_BYTES(shape_size) const void *shape,
        size_t shape_size,
        OUT_BYTES(BY_HOOK) void *map);
