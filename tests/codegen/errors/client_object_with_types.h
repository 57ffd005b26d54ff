GP_LOCAL(CLIENT_OBJECT(stream))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) unsigned int *flags);
