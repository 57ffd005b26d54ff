/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of gpupool, which the hand-written calls of client/ send.
 *
 * Units: bytes.
 *
 * The words are defined in vocabulary.h; codegen/README.md explains how to add a call.
 */

/* Creates a context of the application, either a primary context or one of cuCtxCreate. legacy:
 * handle of its NULL stream. The daemon maps heap_size bytes at heap, from which the client makes
 * small allocations (0: none). */
GP_MESSAGE(0x0101, WAIT, SERVER_HOOK, ALLOCATES(heap_size), NO_DTOH_WAIT)
void gpContextCreate(
        NEW gp_context context,
        int device,
        unsigned int flags,
        NEW CUstream legacy,
        gp_new_address heap,
        size_t heap_size);

/* gpContextCreate without a reply and without device memory. */
GP_MESSAGE(0x0105, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpContextMake(
        NEW gp_context context,
        int device,
        unsigned int flags,
        NEW CUstream legacy);

/* Destroys the context with its streams and events. Images and memory stay until the client drops
 * them. */
GP_MESSAGE(0x0102, POST, SERVER_HOOK, AFTER_ALL, BEFORE_ALL)
void gpContextDestroy(
        DROP gp_context context);

/* cuCtxSynchronize: the daemon replies after all work that the session submitted to this context
 * before. */
GP_MESSAGE(0x0103, WAIT, SERVER_HOOK, AFTER_ALL)
void gpContextSynchronize(
        gp_context context);

/* Work that the session submits later waits for the work that gpContextSynchronize would wait for.
 * No reply. */
GP_MESSAGE(0x0108, POST, SERVER_HOOK, AFTER_ALL, BEFORE_ALL)
void gpContextBarrier(
        gp_context context);

/* Waits for room in the deferred queue (GP_DEFERRED_QUEUE_MAX): the daemon replies when the cost of
 * the deferred records is at most `most`. kept: their cost then. A session has at most one such
 * query in flight. */
GP_MESSAGE(0x0109, WAIT, SERVER_HOOK, CHARGES_NOTHING, UNORDERED, NO_DTOH_WAIT)
void gpBacklogRoom(
        unsigned long long most,
        OUT unsigned long long *kept);

/*
 * Returns the multiprocessors of a green context, or (source 0) of the session on the device, as in
 * CUdevResource: count, least (minSmPartitionSize), alignment (smCoscheduledAlignment).
 */
GP_MESSAGE(0x0123, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpResource(
        int device,
        gp_context source,
        OUT unsigned int *count,
        OUT unsigned int *least,
        OUT unsigned int *alignment);

/* cuDevSmResourceSplitByCount of these multiprocessors into groups of equal size (0: the maximum
 * number). rest_count 0: no multiprocessors are left. */
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

/* cuGreenCtxCreate with some of the groups of such a split, and with the rest if rest is 1. groups
 * 0: all multiprocessors of the source. The result is a context, whose work belongs to parent,
 * too. */
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

/* cuCtxSetLimit. The sessions of a worker share its limits: the stack limit only grows, the others
 * are fixed. */
GP_MESSAGE(0x0104, WAIT, SERVER_HOOK)
void gpContextSetLimit(
        gp_context context,
        int limit,
        size_t value);

/* Maps zeroed memory of a device. address and size are multiples of the granularity. */
GP_MESSAGE(0x0201, WAIT, SERVER_HOOK, ALLOCATES(size), NO_DTOH_WAIT, OWN_RESULT)
void gpMemoryMap(
        gp_new_address address,
        size_t size,
        int device);

/* gpMemoryMap for memory that is not needed yet: the daemon does not reclaim cached memory of other
 * sessions for it. Old clients without allowance send it. */
GP_MESSAGE(0x020e, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpMemoryTry(
        gp_address address,
        size_t size,
        int device);

/* Unmaps a mapping of gpMemoryMap, gpMemoryTry, gpMemoryUse or gpContextCreate, after all work
 * submitted before. */
GP_MESSAGE(0x0202, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpMemoryUnmap(
        gp_address address,
        size_t size);

/*
 * Requests allowance: device memory that is charged to the session, and from which no mapping has
 * been made yet. First the session returns `forgo` bytes of it. granted: the additional allowance,
 * from `least` to `wanted`; 0: not enough free memory. The daemon does not reclaim cached memory of
 * other sessions for it.
 */
GP_MESSAGE(0x020f, WAIT, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpMemoryGrant(
        int device,
        size_t forgo,
        size_t least,
        size_t wanted,
        OUT unsigned long long *granted);

/* Maps zeroed memory from the allowance, of which Welcome grants the first part. It cannot run out
 * of device memory. */
GP_MESSAGE(0x020d, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpMemoryUse(
        gp_address address,
        size_t size,
        int device);

/* cuMemGetInfo within the session's quota on this device. */
GP_MESSAGE(0x0203, WAIT, SERVER_HOOK, AFTER_MEMORY, NO_DTOH_WAIT)
void gpMemoryInfo(
        int device,
        OUT unsigned long long *free,
        OUT unsigned long long *total);

/*
 * Returns the NVML state of a device (protocol/device_state.h). what: enum gp_state_part. words:
 * u64 each. texts: NUL-terminated each. processes: struct gp_state_process each.
 */
GP_MESSAGE(0x0106, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpDeviceState(
        int device,
        unsigned int what,
        OUT_BYTES(BY_HOOK) void *words,
        OUT_BYTES(BY_HOOK) void *texts,
        OUT_BYTES(BY_HOOK) void *processes);

/*
 * The first call makes the daemon measure the run times of the session's work; each call returns
 * the work since the previous one (protocol/trace_event.h). now: the daemon's clock. missed: total
 * number of unmeasured items. error: maximum offset between the GPU's clock and the daemon's. left:
 * 1 if there are more events.
 *
 * Units: nanoseconds.
 */
GP_MESSAGE(0x0107, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpTraceTake(
        OUT unsigned long long *now,
        OUT unsigned long long *missed,
        OUT unsigned long long *error,
        OUT unsigned int *left,
        OUT_BYTES(BY_HOOK) void *events);

/* The daemon replies after all work that the session submitted before, on all streams. */
GP_MESSAGE(0x0204, WAIT, SERVER_HOOK, AFTER_ALL)
void gpFence(void);

/* Creates physical memory of a device, and zeroes it before its first use. size: a multiple of the
 * granularity. */
GP_MESSAGE(0x0205, WAIT, SERVER_HOOK, ALLOCATES(size))
void gpMemoryCreate(
        NEW gp_memory memory,
        size_t size,
        int device);

/* gpMemoryCreate from the allowance. */
GP_MESSAGE(0x021c, POST, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryMake(
        NEW gp_memory memory,
        size_t size,
        int device);

/* Frees physical memory. It must not be mapped. */
GP_MESSAGE(0x0206, POST, SERVER_HOOK, FREES(BY_HOOK))
void gpMemoryRelease(
        DROP gp_memory memory);

/* Maps the first size bytes of physical memory, readable and writable, where no memory is mapped.
 * gpMemoryUnmap unmaps it. */
GP_MESSAGE(0x0207, WAIT, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryAttach(
        gp_memory memory,
        gp_address address,
        size_t size);

/* gpMemoryAttach of the whole memory, without a reply. A driver maps the whole memory only. */
GP_MESSAGE(0x020c, POST, SERVER_HOOK, CHARGES_NOTHING)
void gpMemoryPlace(
        gp_memory memory,
        gp_address address,
        size_t size);

/* Reserves addresses outside of the window, at which the client can map memory. */
GP_MESSAGE(0x0208, WAIT, SERVER_HOOK)
void gpAddressReserve(
        size_t size,
        OUT unsigned long long *address);

/* Frees reserved addresses. All memory there must be unmapped. */
GP_MESSAGE(0x0209, POST, SERVER_HOOK)
void gpAddressFree(
        gp_address address);

/*
 * Gives kernels of a device access to the session's memory on another device, both existing and
 * future memory, until the session ends.
 *
 * Errors: CUDA_ERROR_PEER_ACCESS_UNSUPPORTED if there is no link between the devices.
 */
GP_MESSAGE(0x021b, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpPeerAccess(
        int device,
        int peer);

/*
 * Allows the client to cache unused memory until the reply, which the daemon sends when another
 * session needs memory. A session has at most one such call in flight.
 */
GP_MESSAGE(0x020a, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpMemoryKeep(void);

/* Reports the approximate size of the client's cached device memory, without the allowance. */
GP_MESSAGE(0x021d, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpMemoryCountKept(
        int device,
        unsigned long long bytes);

/* Sent after the reply of gpMemoryKeep, when the client has freed its cached memory. */
GP_MESSAGE(0x020b, POST, SERVER_HOOK, AFTER_ALL)
void gpMemoryKept(void);

/* Host to device: height packed rows of width bytes, in the bulk tail. flags: with GP_COPY_BARRIER
 * all later work of the session, on all streams, waits for this copy (synchronous copies).
 * GP_COPY_LATE marks a late copy, which replaces a host function whose turn has come.
 * GP_COPY_LISTED gives the record a number (protocol/frame.h). */
GP_MESSAGE(0x0301, POST, SERVER_HOOK, BULK_IN, COPIES(BY_HOOK), BARRIER(flags), NO_DTOH_WAIT, WRITES_DEVICE_ONLY, TRACE_NAME("copy to the device"))
void gpCopyIn(
        CUstream stream,
        gp_address dst,
        size_t pitch,
        size_t width,
        size_t height,
        unsigned int flags);

/* gpCopyIn of few bytes, which are part of the record, so that one message can have many copies. */
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

/* Device to host: the daemon sends the packed rows in data notes, in order, then the reply. */
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

/* Host to device: size bytes that arrive in chunks on the data lanes (wire.md, 7). copy: the number
 * of these calls in the session, including this one. */
GP_MESSAGE(0x0311, POST, SERVER_HOOK, COPIES(BY_HOOK), BARRIER(flags), NO_DTOH_WAIT, WRITES_DEVICE_ONLY, TRACE_NAME("copy to the device"))
void gpCopyInLanes(
        CUstream stream,
        gp_address dst,
        size_t size,
        unsigned int flags,
        unsigned int copy);

/* Replaces bytes of an earlier copy with GP_COPY_LISTED, whose source has changed before its stream
 * reached the copy: at this offset of the record with this number, as far as the device has not
 * read it yet. At most GP_REPLACE_MAX bytes. */
GP_MESSAGE(0x0313, POST, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, UNORDERED, NO_DTOH_WAIT)
void gpCopyReplace(
        unsigned int copy,
        unsigned long long offset,
        IN_BYTES(size) const void *data,
        size_t size);

/* Device to host: size bytes, which the daemon sends in chunks of this copy on the data lanes.
 * sent: the number of chunks. */
GP_MESSAGE(0x0312, WAIT, SERVER_HOOK, COPIES(BY_HOOK), NO_DTOH_WAIT, TRACE_NAME("copy from the device"))
void gpCopyOutLanes(
        CUstream stream,
        gp_address src,
        size_t size,
        unsigned int copy,
        OUT unsigned long long *sent);

/*
 * A host function after the stream's earlier work: the daemon sends note 0xff05 when it is due, the
 * client runs it and sends gpHostFunctionDone. Until then the daemon defers later work of the
 * stream, and work that waits for it.
 */
GP_MESSAGE(0x0421, POST, SERVER_HOOK, CHARGES_NOTHING, AWAITS_HOST)
void gpHostFunction(
        CUstream stream,
        NEW gp_host_function function);

GP_MESSAGE(0x0422, POST, SERVER_HOOK, UNORDERED)
void gpHostFunctionDone(
        DROP gp_host_function function);

/* Writes the value to size bytes (4 or 8) of device memory after the stream's earlier work. */
GP_MESSAGE(0x0423, POST, SERVER_HOOK, CHARGES_NOTHING, NO_DTOH_WAIT)
void gpStreamWrite(
        CUstream stream,
        gp_address address,
        unsigned long long value,
        unsigned int size);

/*
 * The daemon defers later work of the stream until the word meets the condition
 * (CU_STREAM_WAIT_VALUE_EQ and others). It sends the note 0xff07 then, or when the wait fails.
 */
GP_MESSAGE(0x0424, POST, SERVER_HOOK, CHARGES_NOTHING, AWAITS_HOST)
void gpStreamWait(
        CUstream stream,
        gp_address address,
        unsigned long long value,
        unsigned int size,
        unsigned int condition);

/*
 * Loads device code: the flattened image (image/fatbin.h) with this SHA-256. The bulk tail is the
 * image. Without a bulk tail the image must be in the daemon's cache; otherwise the daemon replies
 * with missing = 1, and the client repeats the call with the image. info: the kernels
 * (protocol/image_info.h). log: text of the JIT compiler, also after an error.
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
 * gpImageLoad without a reply, of an image that Welcome lists as known for the context's device.
 * Each such image can be loaded once by this call; Welcome has its kernels.
 */
GP_MESSAGE(0x0504, POST, SERVER_HOOK, ALLOCATES(BY_HOOK), NO_DTOH_WAIT)
void gpImageUse(
        gp_context context,
        NEW gp_image image,
        IN_BYTES(32) const void *sha256);

GP_MESSAGE(0x0502, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpImageUnload(
        DROP gp_image image);

/* gpImageUnload that keeps the bytes of the image, and their charge: gpImageUse loads them again on
 * this device. The daemon keeps the bytes of the last GP_RETIRED_MAX images, at most
 * GP_RETIRED_BYTES together. */
GP_MESSAGE(0x0506, POST, SERVER_HOOK, FREES(BY_HOOK), AFTER_ALL)
void gpImageRetire(
        DROP gp_image image,
        int device);

/* Frees the bytes of all these images. */
GP_MESSAGE(0x0508, POST, SERVER_HOOK)
void gpImageForget(void);

/* Loads an image again from the bytes of an image that the session has. No reply. */
GP_MESSAGE(0x0507, POST, SERVER_HOOK, ALLOCATES(BY_HOOK), NO_DTOH_WAIT)
void gpImageAgain(
        gp_context context,
        NEW gp_image image,
        gp_image like);

/* Returns a variable of the image on the context's device. Its address is outside of the window. */
GP_MESSAGE(0x0503, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpImageGlobal(
        gp_context context,
        gp_image image,
        IN_STRING const char *name,
        OUT unsigned long long *address,
        OUT unsigned long long *size);

/* gpImageGlobal for a variable in managed memory, which has the same address on all devices of the
 * driver. */
GP_MESSAGE(0x0505, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpImageManaged(
        gp_context context,
        gp_image image,
        IN_STRING const char *name,
        OUT unsigned long long *address,
        OUT unsigned long long *size);

/*
 * Launches a kernel. kernel: image and index of the function. attributes: (u32 CUlaunchAttributeID,
 * u32 0, 64 bytes of value) each. params: the packed parameter buffer.
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

/* gpLaunch with the result of the launch as reply: for a cooperative or cluster launch whose shape
 * has not been accepted before, and for CUDA_LAUNCH_BLOCKING. */
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

/* cuFuncSetAttribute for a value that the client has checked, or that the kernel already has. */
GP_MESSAGE(0x0604, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpFunctionAttribute(
        gp_kernel kernel,
        int attribute,
        int value);

/* Returns all known attributes of a kernel: values[i], an int32, is CUfunction_attribute i if bit i
 * of known is set. */
GP_MESSAGE(0x0609, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpFunctionAttributes(
        gp_kernel kernel,
        OUT unsigned int *known,
        OUT_BYTES(BY_HOOK) void *values);

/* Returns the reason that the device cannot run a kernel, as one line of text; empty if it can. */
GP_MESSAGE(0x060a, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpKernelUnsupported(
        gp_kernel kernel,
        OUT_BYTES(BY_HOOK) void *why);

/* Enables the note 0xff06, which reports that the session's share of a device has changed. */
GP_MESSAGE(0x0605, POST, SERVER_HOOK, NO_DTOH_WAIT)
void gpShareWatch(void);

/* cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags for at most 64 block sizes. Each query has
 * 16 bytes (u32 size, u32 0, u64 dynamic shared memory), each result is a u32. */
GP_MESSAGE(0x0606, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpOccupancyBlocks(
        gp_kernel kernel,
        unsigned int flags,
        IN_BYTES(questions_size) const void *questions,
        size_t questions_size,
        OUT_BYTES(BY_HOOK) void *blocks);

/* cuOccupancyMaxActiveClusters for clusters of 1, 2, ... `sizes` blocks in a row, each alone in its
 * grid. config: as in gpLaunch, where the attributes have the dimensions of one cluster, which are
 * ignored. At most 64 sizes; each result is u32 CUresult, i32 clusters. */
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

/* Occupancy of clusters. config: as in gpLaunch. what: 0 cuOccupancyMaxPotentialClusterSize, 1
 * cuOccupancyMaxActiveClusters. */
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

/* Returns the driver's encoding of a tensor map for the context's device. shape: struct
 * gp_tensor_shape (protocol/tensor_shape.h). */
GP_MESSAGE(0x0901, WAIT, SERVER_HOOK, NO_DTOH_WAIT)
void gpTensorMap(
        gp_context context,
        IN_BYTES(shape_size) const void *shape,
        size_t shape_size,
        OUT_BYTES(BY_HOOK) void *map);

/* Launch attributes whose values have neither handles nor addresses. */
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
