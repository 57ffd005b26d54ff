GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetFlags(
        OUT FIELD(flags +1) unsigned int *flags);
