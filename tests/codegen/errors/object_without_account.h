GP_KIND(pool_of_ours, TYPES(CUmemPoolOfOurs), COST(64), DESTROY(cuMemPoolDestroy), LIFETIME(session))

GP_CALL(0x1, WAIT)
CUresult cuMemPoolMake(
        OUT NEW CUmemPoolOfOurs *pool,
        int flags);
