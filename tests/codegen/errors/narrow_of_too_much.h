GP_LOCAL()
CUresult cuWide(
        OUT size_t *size,
        CUdeviceptr address);

GP_LOCAL()
CUresult cuMany(
        IN size_t *size);

GP_LOCAL(NARROW(cuMany))
CUresult cuOld(
        IN unsigned int *size);
