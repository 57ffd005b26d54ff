GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) FIELD(number) unsigned int *flags);
