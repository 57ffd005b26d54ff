GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(AS(cuInit))
CUresult cuFirst(void);
