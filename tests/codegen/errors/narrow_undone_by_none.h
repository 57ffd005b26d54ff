GP_LOCAL()
CUresult cuWide(
        OUT size_t *size,
        CUdeviceptr address);

GP_LOCAL(NARROW(cuWide), UNDO(cuWide))
CUresult cuOld(
        OUT unsigned int *size,
        CUdeviceptr_v1 address);
