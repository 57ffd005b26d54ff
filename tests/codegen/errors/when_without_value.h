GP_LOCAL(OF(active), WHEN(primary))
CUresult cuCtxGetFlags(
        OUT FROM(flags) unsigned int *flags);
