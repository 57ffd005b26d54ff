GP_LOCAL(OF(active))
CUresult cuCtxGetFlags(
        OUT FROM(flags) FROM(number) unsigned int *flags);
