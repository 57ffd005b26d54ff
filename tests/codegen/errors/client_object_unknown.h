GP_LOCAL(CLIENT_OBJECT(nobody))
CUresult cuCtxGetFlags(
        OUT FIELD(flags) unsigned int *flags);
