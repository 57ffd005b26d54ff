/* A description in small: each kind of call and each way of travelling once. */

GP_SYMBOL(cuInit, cuInit, 2000)
GP_SYMBOL(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000)
GP_SYMBOL(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 11000)
GP_SYMBOL(cuStreamQuery, cuStreamQuery, 2000)
GP_SYMBOL_PTSZ(cuStreamQuery_ptsz, cuStreamQuery, 7000)
GP_SYMBOL(cuGraphCreate, cuGraphCreate, 10000)

GP_LOCAL()
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

GP_MESSAGE(0x0004, WAIT, SERVER_HOOK, ALLOCATES(size))
void gpSampleMap(
        gp_new_address address,
        size_t size,
        int device);

GP_MESSAGE(0x0005, POST, SERVER_HOOK, BULK_IN, COPIES(BY_HOOK))
void gpSampleCopyIn(
        CUstream stream,
        gp_address dst,
        float scale);

GP_MESSAGE(0x0006, WAIT, SERVER_HOOK)
void gpSampleLoad(
        NEW gp_image image,
        IN_BYTES(32) const void *hash,
        IN_STRING const char *name,
        IN_BYTES(options_size) const void *options,
        size_t options_size,
        OUT_BYTES(BY_HOOK) void *info);
