GP_LOCAL(OF(stream))
CUresult cuCtxGetFlags(
        OUT FROM(flags) unsigned int *flags);
