GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(AS(cuInit, 0), ANSWERS(CUDA_SUCCESS))
CUresult cuFirst(void);
