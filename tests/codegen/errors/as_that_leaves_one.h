GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(AS(cuInit, 0))
CUresult cuFirst(
        unsigned int Flags);
