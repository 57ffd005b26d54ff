GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(FORWARD(cuInit, 0), RETURNS(CUDA_SUCCESS))
CUresult cuFirst(void);
