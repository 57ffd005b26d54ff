GP_LOCAL(OF(active))
CUresult cuCtxGetFlags(
        OUT FROM(flags) BY(gpc_flags) unsigned int *flags);
