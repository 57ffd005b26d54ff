GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) COMPUTE(gpc_flags) unsigned int *flags);
