GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(FORWARD(cuInit))
CUresult cuFirst(void);
