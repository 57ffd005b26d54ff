GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(FORWARD(cuInit, 0))
CUresult cuFirst(
        unsigned int Flags);
