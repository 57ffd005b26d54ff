GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxGetFlags(
        IN FIELD(flags) const unsigned int *flags);
