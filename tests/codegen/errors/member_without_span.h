GP_STRUCT(CUfoo,
        CUdeviceptr dst)

GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN const CUfoo *foo);
