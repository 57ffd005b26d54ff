GP_LOCAL(OF(nobody))
CUresult cuCtxGetFlags(
        OUT FROM(flags) unsigned int *flags);
