GP_CALL(0x1, WAIT)
CUresult cuMemReserveSome(
        OUT_N(n) CUdeviceptr *list,
        unsigned int n);
