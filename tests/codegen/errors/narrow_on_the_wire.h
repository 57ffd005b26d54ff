GP_LOCAL()
CUresult cuWide(
        OUT size_t *size,
        CUdeviceptr address);

GP_CALL(0x1, WAIT, NARROW(cuWide))
CUresult cuOld(
        OUT unsigned int *size,
        CUdeviceptr_v1 address);
