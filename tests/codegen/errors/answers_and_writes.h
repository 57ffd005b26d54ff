GP_LOCAL(OF(active), ANSWERS(CUDA_SUCCESS))
CUresult cuCtxGetFlags(
        OUT FROM(flags) unsigned int *flags);
