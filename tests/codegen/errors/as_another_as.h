GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(AS(cuInit, 0))
CUresult cuFirst(void);

GP_LOCAL(AS(cuFirst))
CUresult cuSecond(void);
