GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(FORWARD(cuInit, 0))
CUresult cuFirst(void);

GP_LOCAL(FORWARD(cuFirst))
CUresult cuSecond(void);
