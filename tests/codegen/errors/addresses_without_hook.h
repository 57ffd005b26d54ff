GP_CALL(0x1, WAIT)
CUresult cuFoo(
        IN_N(n) const CUdeviceptr *dsts,
        unsigned int n);
