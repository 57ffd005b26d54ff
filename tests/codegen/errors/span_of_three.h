GP_CALL(0x1, WAIT)
CUresult cuFoo(
        SPAN(size, 2, 3) CUdeviceptr dst,
        size_t size);
