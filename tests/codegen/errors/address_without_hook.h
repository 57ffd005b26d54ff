GP_CALL(0x1, WAIT)
CUresult cuFoo(
        CUdeviceptr dst);
