GP_LOCAL(OF(active))
CUresult cuCtxGetFlags(
        OUT FROM(flags +1) unsigned int *flags);
