/* SPDX-License-Identifier: Apache-2.0 */
/* gpupool's own messages: what the hand-written calls of client/ are made of.  Units are bytes. */

/* A context of the application: primary or made by cuCtxCreate.  legacy names its NULL stream.
 * heap_size bytes are mapped at heap for the client to cut small allocations from (0: none). */
GP_MESSAGE(0x0101, WAIT, SERVER_HOOK, ALLOCATES(heap_size), NO_DTOH_WAIT)
void gpContextCreate(
        NEW gp_context context,
        int device,
        unsigned int flags,
        NEW CUstream legacy,
        gp_new_address heap,
        size_t heap_size);

/* The same, and nobody waits for it; it takes no device memory. */
GP_MESSAGE(0x0105, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpContextMake(
        NEW gp_context context,
        int device,
        unsigned int flags,
        NEW CUstream legacy);

/* Streams and events of the context go with it; images and memory stay until the client drops them. */
GP_MESSAGE(0x0102, POST, SERVER_HOOK, AFTER_ALL, BEFORE_ALL)
void gpContextDestroy(
        DROP gp_context context);

/* cuCtxSynchronize: answered when all that the session submitted to this context so far is done. */
GP_MESSAGE(0x0103, WAIT, SERVER_HOOK, AFTER_ALL)
void gpContextSynchronize(
        gp_context context);

/* What gpContextSynchronize would wait for comes before all that the session submits later; nobody
 * waits for it. */
GP_MESSAGE(0x0108, POST, SERVER_HOOK, AFTER_ALL, BEFORE_ALL)
void gpContextBarrier(
        gp_context context);

/* Room for records that the daemon may have to keep (GP_DEFERRED_QUEUE_MAX): answered when those that it keeps cost at most
 * `most`.  kept: what they cost then.  A session has one such query at a time. */
GP_MESSAGE(0x0109, WAIT, SERVER_HOOK, CHARGES_NOTHING, UNORDERED, NO_DTOH_WAIT)
void gpBacklogRoom(
        unsigned long long most,
        OUT unsigned long long *kept);

/*
 * Multiprocessors of a device: of a green context, or (source 0) what the session has.  What a
 * CUdevResource says of them: count, least (minSmPartitionSize), alignment (smCoscheduledAlignment).
 */
GP_MESSAGE(0x0123, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpResource(
        int device,
        gp_context source,
        OUT unsigned int *count,
        OUT unsigned int *least,
        OUT unsigned int *alignment);

/* cuDevSmResourceSplitByCount of those into groups (0: as many as there are).  All groups are alike;
 * rest_count 0: nothing is left. */
GP_MESSAGE(0x0124, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpResourceSplit(
        int device,
        gp_context source,
        unsigned int flags,
        unsigned int wanted,
        unsigned int groups,
        OUT unsigned int *made,
        OUT unsigned int *count,
        OUT unsigned int *least,
        OUT unsigned int *alignment,
        OUT unsigned int *rest_count,
        OUT unsigned int *rest_least,
        OUT unsigned int *rest_alignment);

/* cuGreenCtxCreate, of some of the groups of such a split, and of the rest if rest is 1; groups 0: of
 * all that the source has.  It is a context as others; its work is parent's, too. */
GP_MESSAGE(0x0125, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpGreenMake(
        NEW gp_context context,
        NEW CUstream legacy,
        gp_context parent,
        gp_context source,
        unsigned int flags,
        unsigned int wanted,
        unsigned int groups,
        unsigned int rest,
        unsigned long long picks,
        unsigned long long more_picks);

/* cuCtxSetLimit: the worker's limits are shared; they only grow (stack) or are given (the others). */
GP_MESSAGE(0x0104, WAIT, SERVER_HOOK)
void gpContextSetLimit(
        gp_context context,
        int limit,
        size_t value);

/* Maps fresh zeroed memory of a device; address and size are multiples of the granularity. */
GP_MESSAGE(0x0201, WAIT, SERVER_HOOK, ALLOCATES(size), NO_DTOH_WAIT)
void gpMemoryMap(
        gp_new_address address,
        size_t size,
        int device);

/* The same as gpMemoryMap, of memory that is not needed yet: nobody is asked to give any back for it.
 * Clients from before there was credit send it. */
GP_MESSAGE(0x020e, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpMemoryTry(
        gp_address address,
        size_t size,
        int device);

/* Unmaps what one gpMemoryMap (or gpMemoryTry, gpMemoryUse, or gpContextCreate) mapped, once all work submitted before is done. */
GP_MESSAGE(0x0202, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpMemoryUnmap(
        gp_address address,
        size_t size);

/*
 * Credit: memory of a device that the session has, that counts for it, and that nothing is made of
 * yet.  First `forgo` of it is given back.  granted: how much more there is, from `least` to
 * `wanted`; 0: so much is not free.  Nobody is asked to give any back for it.
 */
GP_MESSAGE(0x020f, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpMemoryGrant(
        int device,
        size_t forgo,
        size_t least,
        size_t wanted,
        OUT unsigned long long *granted);

/* Maps fresh zeroed memory out of credit, of which Welcome has granted the first: there is no way
 * that the device has none. */
GP_MESSAGE(0x020d, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpMemoryUse(
        gp_address address,
        size_t size,
        int device);

/* cuMemGetInfo: of the session's quota on this device. */
GP_MESSAGE(0x0203, WAIT, SERVER_HOOK, AFTER_MEMORY, NO_DTOH_WAIT)
void gpMemoryInfo(
        int device,
        OUT unsigned long long *free,
        OUT unsigned long long *total);

/*
 * What NVML says of a device (protocol/device_state.h).
 * what: enum gp_state_part.  words: u64 each; texts: each with its NUL; processes: struct
 * gp_state_process each.
 */
GP_MESSAGE(0x0106, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpDeviceState(
        int device,
        unsigned int what,
        OUT_BYTES(BY_HOOK) void *words,
        OUT_BYTES(BY_HOOK) void *texts,
        OUT_BYTES(BY_HOOK) void *processes);

/*
 * The first one asks the daemon to measure when the session's work runs; each tells of what was done since
 * the last (protocol/trace_event.h).
 * now: the daemon's clock; missed: work that was never measured, in all; error: how far the GPU's clock may be
 * off the daemon's; left: 1 if there is more to tell.  Times are nanoseconds.
 */
GP_MESSAGE(0x0107, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpTraceTake(
        OUT unsigned long long *now,
        OUT unsigned long long *missed,
        OUT unsigned long long *error,
        OUT unsigned int *left,
        OUT_BYTES(BY_HOOK) void *events);

/* Answered when all that the session submitted so far, to any stream, is done. */
GP_MESSAGE(0x0204, WAIT, SERVER_HOOK, AFTER_ALL)
void gpFence(void);

/* Physical memory of a device, zeroed before it is first seen; size is a multiple of the granularity. */
GP_MESSAGE(0x0205, WAIT, SERVER_HOOK, ALLOCATES(size))
void gpMemoryCreate(
        NEW gp_memory memory,
        size_t size,
        int device);

/* The same out of credit. */
GP_MESSAGE(0x021c, POST, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryMake(
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
 * Kernels of a device reach the session's memory of another one from now on, what is there and what
 * will be, for as long as the session lives.  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED: no link is between
 * them.
 */
GP_MESSAGE(0x021b, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpPeerAccess(
        int device,
        int peer);

/*
 * The client keeps memory that nothing uses, and may do so until this is answered: somebody else
 * needs it.  One at a time.
 */
GP_MESSAGE(0x020a, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpMemoryKeep(void);

/* So much of the device's memory the client keeps, about; credit does not count. */
GP_MESSAGE(0x021d, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpMemoryCountKept(
        int device,
        unsigned long long bytes);

/* After that answer: what was kept has been given back. */
GP_MESSAGE(0x020b, POST, SERVER_HOOK, AFTER_ALL)
void gpMemoryKept(void);

/* Host to device: height rows of width bytes, packed, in the bulk tail.  flags: GP_COPY_BARRIER
 * makes all later work of the session, on every stream, wait for this copy (synchronous copies);
 * GP_COPY_LATE marks a late copy, which takes the place of a host function whose turn has come;
 * GP_COPY_LISTED gives the record a number (protocol/frame.h). */
GP_MESSAGE(0x0301, POST, SERVER_HOOK, BULK_IN, COPIES(BY_HOOK), BARRIER(flags), NO_DTOH_WAIT, WRITES_DEVICE_ONLY, TRACE_NAME("copy to the device"))
void gpCopyIn(
        CUstream stream,
        gp_address dst,
        size_t pitch,
        size_t width,
        size_t height,
        unsigned int flags);

/* The same, of few bytes: they are part of the record, so that many go in one message. */
GP_MESSAGE(0x0305, POST, SERVER_HOOK, COPIES(BY_HOOK), RATE_LIMITED, BARRIER(flags), NO_DTOH_WAIT, WRITES_DEVICE_ONLY, TRACE_NAME("copy to the device"))
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
GP_MESSAGE(0x0302, WAIT, SERVER_HOOK, BULK_OUT, COPIES(BY_HOOK), NO_DTOH_WAIT, TRACE_NAME("copy from the device"))
void gpCopyOut(
        CUstream stream,
        gp_address src,
        size_t pitch,
        size_t width,
        size_t height);

GP_MESSAGE(0x0303, POST, SERVER_HOOK, LAUNCHES, NO_DTOH_WAIT, TRACE_NAME("copy on the device"))
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
GP_MESSAGE(0x0304, POST, SERVER_HOOK, LAUNCHES, NO_DTOH_WAIT, TRACE_NAME("fill"))
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
GP_MESSAGE(0x0311, POST, SERVER_HOOK, COPIES(BY_HOOK), BARRIER(flags), NO_DTOH_WAIT, WRITES_DEVICE_ONLY, TRACE_NAME("copy to the device"))
void gpCopyInLanes(
        CUstream stream,
        gp_address dst,
        size_t size,
        unsigned int flags,
        unsigned int copy);

/* What the source of an earlier copy with GP_COPY_LISTED has become before its stream reached it: these bytes take
 * the place of those at this offset of the record of this number, where the device may not have read them yet.  At
 * most GP_REPLACE_MAX bytes. */
GP_MESSAGE(0x0313, POST, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpCopyReplace(
        unsigned int copy,
        unsigned long long offset,
        IN_BYTES(size) const void *data,
        size_t size);

/* Device to host: size bytes that come back in chunks of this copy on the data lanes; sent: how
 * many of them. */
GP_MESSAGE(0x0312, WAIT, SERVER_HOOK, COPIES(BY_HOOK), NO_DTOH_WAIT, TRACE_NAME("copy from the device"))
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
GP_MESSAGE(0x0421, POST, SERVER_HOOK, CHARGES_NOTHING, AWAITS_HOST)
void gpHostFunction(
        CUstream stream,
        NEW gp_function function);

GP_MESSAGE(0x0422, POST, SERVER_HOOK, UNORDERED)
void gpHostFunctionDone(
        DROP gp_function function);

/* Behind the stream's work: size bytes (4 or 8) of device memory become the value. */
GP_MESSAGE(0x0423, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpStreamWrite(
        CUstream stream,
        gp_address address,
        unsigned long long value,
        unsigned int size);

/*
 * What comes behind it in the stream is kept by the daemon until that word is as condition says
 * (CU_STREAM_WAIT_VALUE_EQ and its like); then, or when it is refused, the note 0xff07 says so.
 */
GP_MESSAGE(0x0424, POST, SERVER_HOOK, CHARGES_NOTHING, AWAITS_HOST)
void gpStreamWait(
        CUstream stream,
        gp_address address,
        unsigned long long value,
        unsigned int size,
        unsigned int condition);

/*
 * Loads device code: the flattened image (image/fatbin.h) of this SHA-256.  The image itself is
 * the bulk tail; without one it must be in the daemon's cache, else missing = 1 comes back and the
 * client sends the call again with it.   * info: the kernels (protocol/image_info.h); log: text of the JIT compiler, also when it fails.
 */
GP_MESSAGE(0x0501, WAIT, SERVER_HOOK, BULK_IN, ALLOCATES(BY_HOOK), NO_DTOH_WAIT, COMPILES)
void gpImageLoad(
        gp_context context,
        NEW gp_image image,
        IN_BYTES(32) const void *sha256,
        size_t size,
        unsigned int option_count,
        IN_OPTIONS(option_count, option_values) CUjit_option *options,
        BY_HOOK void **option_values,
        OUT unsigned int *missing,
        OUT_BYTES(BY_HOOK) void *info,
        OUT_BYTES(BY_HOOK) void *log);

/*
 * The same, without waiting, of an image that Welcome names as known for the device of the context.
 * Each can be loaded so once; its kernels are those that Welcome tells of.
 */
GP_MESSAGE(0x0504, POST, SERVER_HOOK, ALLOCATES(BY_HOOK), NO_DTOH_WAIT)
void gpImageUse(
        gp_context context,
        NEW gp_image image,
        IN_BYTES(32) const void *sha256);

GP_MESSAGE(0x0502, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpImageUnload(
        DROP gp_image image);

/* The same, and the image's bytes stay, with what they count for: gpImageUse loads them once more on this
 * device.  So do those of the last GP_RETIRED_MAX such images, if they are GP_RETIRED_BYTES at most. */
GP_MESSAGE(0x0506, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpImageRetire(
        DROP gp_image image,
        int device);

/* The bytes of all those go. */
GP_MESSAGE(0x0508, POST, SERVER_HOOK)
void gpImageForget(void);

/* Loads the bytes of an image that the session has once more, without waiting. */
GP_MESSAGE(0x0507, POST, SERVER_HOOK, ALLOCATES(BY_HOOK), NO_DTOH_WAIT)
void gpImageAgain(
        gp_context context,
        NEW gp_image image,
        gp_image like);

/* A variable of the image on the context's device; its address lies outside the window. */
GP_MESSAGE(0x0503, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpImageGlobal(
        gp_context context,
        gp_image image,
        IN_STRING const char *name,
        OUT unsigned long long *address,
        OUT unsigned long long *size);

/* The same of one that is managed memory: the driver has it at one address for all its devices. */
GP_MESSAGE(0x0505, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpImageManaged(
        gp_context context,
        gp_image image,
        IN_STRING const char *name,
        OUT unsigned long long *address,
        OUT unsigned long long *size);

/*
 * A launch.  kernel: image and index of the function; attributes: (u32 CUlaunchAttributeID, u32 0,
 * 64 bytes of value) each; params: the packed parameter buffer.
 */
GP_MESSAGE(0x0601, POST, SERVER_HOOK, LAUNCHES, NO_DTOH_WAIT, ASYNC_LAUNCH, UNBOUNDED, INVALIDATES_CHECKS, TRACE_NAME("a kernel"))
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
GP_MESSAGE(0x0602, WAIT, SERVER_HOOK, LAUNCHES, NO_DTOH_WAIT, UNBOUNDED, TRACE_NAME("a kernel"))
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
GP_MESSAGE(0x0604, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpFunctionAttribute(
        gp_kernel kernel,
        int attribute,
        int value);

/* All that is known of a kernel: values[i], an int32, is that of CUfunction_attribute i where bit i of
 * known is set. */
GP_MESSAGE(0x0609, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpFunctionAttributes(
        gp_kernel kernel,
        OUT unsigned int *known,
        OUT_BYTES(BY_HOOK) void *values);

/* Why the device cannot run a kernel, as text of one line; empty: it can. */
GP_MESSAGE(0x060a, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpKernelUnsupported(
        gp_kernel kernel,
        OUT_BYTES(BY_HOOK) void *why);

/* From now on the note 0xff06 tells when the session's share of a device has changed. */
GP_MESSAGE(0x0605, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpShareWatch(void);

/* cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags for up to 64 block sizes: questions of 16 bytes
 * (u32 size, u32 0, u64 dynamic shared memory), answered by a u32 each. */
GP_MESSAGE(0x0606, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpOccupancyBlocks(
        gp_kernel kernel,
        unsigned int flags,
        IN_BYTES(questions_size) const void *questions,
        size_t questions_size,
        OUT_BYTES(BY_HOOK) void *blocks);

/* cuOccupancyMaxActiveClusters for clusters of 1, 2 … `sizes` blocks in a row, each of them alone in its
 * grid: config as in gpLaunch, where the attributes have one cluster's dimensions, which do not count.
 * At most 64; each is answered by u32 CUresult, i32 clusters. */
GP_MESSAGE(0x0607, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpOccupancyClusterSizes(
        unsigned int sizes,
        gp_kernel kernel,
        unsigned int block_x,
        unsigned int block_y,
        unsigned int block_z,
        unsigned int shared,
        IN_BYTES(attributes_size) const void *attributes,
        size_t attributes_size,
        OUT_BYTES(BY_HOOK) void *answers);

/* Occupancy of clusters: config as in gpLaunch; what: 0 cuOccupancyMaxPotentialClusterSize,
 * 1 cuOccupancyMaxActiveClusters. */
GP_MESSAGE(0x0603, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
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
GP_MESSAGE(0x0901, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpTensorMap(
        gp_context context,
        IN_BYTES(shape_size) const void *shape,
        size_t shape_size,
        OUT_BYTES(BY_HOOK) void *map);

/* Attributes of launches that hold no handle and no address. */
GP_SET(launch_number,
        CU_LAUNCH_ATTRIBUTE_IGNORE,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        CU_LAUNCH_ATTRIBUTE_PRIORITY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
        CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING)
