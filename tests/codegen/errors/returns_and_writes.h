GP_LOCAL(CLIENT_OBJECT(active), RETURNS(CUDA_SUCCESS))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) unsigned int *flags);
