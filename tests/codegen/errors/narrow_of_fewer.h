GP_LOCAL()
CUresult cuWide(
        OUT size_t *size,
        CUdeviceptr address);

GP_LOCAL(NARROW(cuWide))
CUresult cuOld(
        OUT unsigned int *size);
