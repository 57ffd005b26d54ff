/* A description in small: each kind of call and each way of travelling once. */

GP_SYMBOL(cuInit, cuInit, 2000)
GP_SYMBOL(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000)
GP_SYMBOL(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 11000)
GP_SYMBOL(cuStreamQuery, cuStreamQuery, 2000)
GP_SYMBOL_PTSZ(cuStreamQuery_ptsz, cuStreamQuery, 7000)
GP_SYMBOL(cuLinkCreate_v2, cuLinkCreate, 6050)
GP_SYMBOL(cuLinkDestroy, cuLinkDestroy, 5050)
GP_SYMBOL(cuSampleSame, cuSampleSame, 12000)
GP_SYMBOL(cuSampleSetGeneric, cuSampleSetGeneric, 12000)
GP_SYMBOL(cuSampleSetCopy, cuSampleSetCopy, 12000)
GP_SYMBOL(cuSampleOfToken, cuSampleOfToken, 12000)
GP_SYMBOL(cuSampleAsk, cuSampleAsk, 12000)
GP_SYMBOL(cuSampleWait, cuSampleWait, 12000)
GP_SYMBOL(cuSampleList, cuSampleList, 12000)
GP_SYMBOL(cuSampleList_v2, cuSampleList, 12010)
GP_SYMBOL_PTDS(cuSampleList_v2_ptds, cuSampleList, 12010)
GP_SYMBOL(cuSampleText, cuSampleText, 12000)
GP_SYMBOL(cuSampleNone, cuSampleNone, 12000)
GP_SYMBOL(cuSampleAsked, cuSampleAsked, 12000)
GP_SYMBOL(cuSampleNode, cuSampleNode, 12000)
GP_SYMBOL(cuSampleUnsafe, cuSampleUnsafe, 12000)
GP_SYMBOL(cuSampleOfDefault, cuSampleOfDefault, 12000)
GP_SYMBOL(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000)
GP_SYMBOL(cuSampleUnload, cuSampleUnload, 12000)
GP_SYMBOL(cuSampleFree, cuSampleFree, 12000)
GP_SYMBOL(cuGraphCreate, cuGraphCreate, 10000)

GP_LOCAL(SIGNAL_SAFE)
CUresult cuInit(
        unsigned int Flags);

GP_CALL(0x0001, POST)
CUresult cuFuncSetCacheConfig(
        CUfunction hfunc,
        CUfunc_cache config);

GP_CALL(0x0002, WAIT)
CUresult cuOccupancyAvailableDynamicSMemPerBlock(
        OUT size_t *dynamicSmemSize,
        CUfunction func,
        int numBlocks,
        int blockSize);

GP_CALL(0x0003, WAIT, SERVER_HOOK, CHARGES_NOTHING, CAPTURE(refused))
CUresult cuStreamQuery(
        CUstream hStream);

GP_MESSAGE(0x0004, WAIT, SERVER_HOOK, ALLOCATES(size), UNORDERED)
void gpSampleMap(
        gp_new_address address,
        size_t size,
        int device);

GP_MESSAGE(0x0005, POST, SERVER_HOOK, BULK_IN, COPIES(BY_HOOK), WRITES_DEVICE_ONLY)
void gpSampleCopyIn(
        CUstream stream,
        gp_address dst,
        float scale);

GP_MESSAGE(0x0006, WAIT, SERVER_HOOK, CHARGES_NOTHING, RATE_LIMITED, COMPILES)
void gpSampleLoad(
        NEW gp_image image,
        IN_BYTES(32) const void *hash,
        IN_STRING const char *name,
        IN_BYTES(options_size) const void *options,
        size_t options_size,
        OUT_BYTES(BY_HOOK) void *info);

/* What the client answers alone. */
GP_CLIENT_OBJECT(sample, STRUCT(gpc_sample), ENTER(gpc_sample_begin), LEAVE(gpc_sample_end), HEADER("client/sample.h", "client/other.h"))

GP_LOCAL(CLIENT_OBJECT(sample), REQUIRE(params.type, 1, 2))
CUresult cuSampleAsk(
        OUT FIELD(params.number) int *number,
        OUT OPT FIELD(owner->name) const char **name,
        OUT_BYTES(len) FIELD(text) char *text,
        int len,
        OUT COMPUTE(gpc_sample_value, key, 7) size_t *value,
        WITHIN(1, 9) unsigned int key,
        OUT FIXED(CU_STREAM_DEFAULT) unsigned int *flags,
        STORE(params.asked) int asked);

GP_LOCAL(RETURNS(CUDA_ERROR_NOT_SUPPORTED), CHARGES_NOTHING, CAPTURE(unaffected))
CUresult cuStreamAttachMemAsync(
        CUstream hStream,
        CUdevice device,
        IN const CUuuid *what);

/* What calls do while streams are captured. */
GP_LOCAL(CHARGES_NOTHING, CAPTURE(node))
CUresult cuSampleNode(
        CUstream hStream);

GP_LOCAL(CAPTURE(unsafe))
CUresult cuSampleUnsafe(void);

GP_LOCAL(CAPTURE(default_stream))
CUresult cuSampleOfDefault(
        size_t size);

/* Calls that synchronize implicitly. */
GP_LOCAL(SYNCHRONIZES(CURRENT))
CUresult cuSampleUnload(
        int number);

GP_LOCAL(CAPTURE(unsafe), SYNCHRONIZES(memory))
CUresult cuSampleFree(
        BY_HOOK void *memory);

GP_SET(sample_number, CU_JIT_TARGET, CU_JIT_CACHE_MODE)

/* A chain of options, of a call that is generated whole and of a message. */
GP_OPTIONS(CUjit_option, CU_JIT_MAX_REGISTERS, CLIENT_ONLY CU_JIT_WALL_TIME)
GP_KIND(linker, TYPES(CUlinkState), COST(4096), DESTROY(cuLinkDestroy), LIFETIME(context))

GP_CALL(0x0007, WAIT, CHARGES_NOTHING)
CUresult cuLinkCreate_v2(
        unsigned int numOptions,
        IN_OPTIONS(numOptions, optionValues) CUjit_option *options,
        BY_HOOK void **optionValues,
        OUT NEW CUlinkState *stateOut);

GP_MESSAGE(0x0008, POST, SERVER_HOOK)
void gpSampleOptions(
        unsigned int count,
        IN_OPTIONS(count, values) CUjit_option *options,
        BY_HOOK void **values);

/* Another call with some of its parameters given; and what its handle's token finds. */
GP_LOCAL(FORWARD(cuSampleNode, hStream), CHARGES_NOTHING, CAPTURE(declined))
CUresult cuSampleSame(
        CUstream hStream);

/* With a converted parameter. */
GP_LOCAL()
CUresult cuSampleSetGeneric(
        unsigned int number,
        IN CUgraphNodeParams *params);

GP_LOCAL(FORWARD(cuSampleSetGeneric, number, copy))
CUresult cuSampleSetCopy(
        unsigned int number,
        IN CONVERT(gpc_sample_generic, context, true) const CUDA_MEMCPY3D *copy,
        CUcontext context);

GP_CLIENT_OBJECT(linker, TYPES(CUlinkState), STRUCT(gpc_object), KIND(linker), HEADER("client/context/object.h"))

GP_LOCAL()
CUresult cuSampleOfToken(
        CUlinkState state,
        OUT FIELD(context->number) unsigned long long *number);

/* A call's place among the others, its account, and bulk to the client. */
GP_MESSAGE(0x0009, POST, SERVER_HOOK, FREES(size), AFTER_MEMORY, AFTER_ALL, BEFORE_ALL)
void gpSampleUnmap(
        gp_address address,
        size_t size,
        int device);

GP_MESSAGE(0x000a, WAIT, SERVER_HOOK, BULK_OUT, COPIES(size), BARRIER(flags), NO_DTOH_WAIT, OWN_RESULT)
void gpSampleCopyOut(
        CUstream stream,
        gp_address src,
        size_t size,
        unsigned int flags);

GP_CALL(0x000b, WAIT, CLIENT_HOOK, SERVER_HOOK, CHARGES_NOTHING, QUERY, AWAITS_STREAM, CAPTURE(unaffected))
CUresult cuSampleWait(
        CUstream hStream);

/* A list that comes back, other names and other ways. */
GP_CALL(0x000c, WAIT, ALIAS(cuSampleList_v2))
CUresult cuSampleList(
        OUT_N(count) unsigned int *list,
        unsigned int count);

GP_LOCAL(VIA(gpSampleUnmap))
CUresult cuSampleText(
        OUT STATIC const char **text);

/* What the daemon uses by hand, and what users are told of what is not there. */
GP_DRIVER(cuInit)
GP_DRIVER_OPTIONAL(cuStreamQuery)
GP_UNSUPPORTED("another function", "there is no such thing", cuSampleNone)
GP_UNSUPPORTED_SILENT("nobody has it", cuSampleAsked)

/* What is checked first. */
GP_SYMBOL(cuSampleOld, cuSampleOld, 2000)

GP_LOCAL(QUICK)
CUresult cuSampleOld(
        CUcontext ctx);

GP_PRECHECK(cuSampleAsk, VALUE(number, text), HANDLE(name), INITIALIZED, WITHIN(key, 2, 9), CURRENT)
GP_PRECHECK(cuStreamAttachMemAsync, INITIALIZED, DEVICE(device), VALUE(hStream), CONTEXT(what), CURRENT(hStream))
GP_PRECHECK(cuStreamQuery, CURRENT(hStream))
GP_PRECHECK(cuSampleList_v2, VALUE(list))
GP_PRECHECK(cuSampleOld, LEGACY(ctx))

/* Devices that come back, and bytes that may be absent. */
GP_SYMBOL(cuSampleDevices, cuSampleDevices, 12000)
GP_CALL(0x000d, WAIT)
CUresult cuSampleDevices(
        OUT_N(count) CUdevice *devices,
        size_t count,
        IN_BYTES(16) OPT const void *key);

/* One element and a list in, a list of handles out. */
GP_SYMBOL(cuSampleLists, cuSampleLists, 12000)
GP_CALL(0x000e, WAIT)
CUresult cuSampleLists(
        IN const float *scale,
        IN_N(count) const CUlinkState *linkers,
        OUT_N(count) CUlinkState *others,
        unsigned int count);

/* Work of a stream that another thread may give to the driver. */
GP_MESSAGE(0x000f, POST, SERVER_HOOK, LAUNCHES, ASYNC_LAUNCH, UNBOUNDED, INVALIDATES_CHECKS, TRACE_NAME("a launch"))
void gpSampleLaunch(
        CUstream stream,
        unsigned int number);

GP_MESSAGE(0x0010, POST, SERVER_HOOK, CHARGES_NOTHING, AWAITS_HOST)
void gpSampleHold(
        CUstream stream);
