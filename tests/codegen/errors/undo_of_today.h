GP_LOCAL()
CUresult cuWide(
        OUT size_t *size,
        CUdeviceptr address);

GP_LOCAL(UNDO(cuWide))
CUresult cuOld(
        unsigned int size);
