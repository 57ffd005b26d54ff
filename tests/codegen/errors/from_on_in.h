GP_LOCAL(OF(active))
CUresult cuCtxGetFlags(
        IN FROM(flags) const unsigned int *flags);
