GP_KIND(pool_of_ours, TYPES(CUmemPoolOfOurs), COST(64), OBJECT(cuMemPoolDestroy), GOES_WITH(session))

GP_CALL(0x1, WAIT)
CUresult cuMemPoolMake(
        OUT NEW CUmemPoolOfOurs *pool,
        int flags);
