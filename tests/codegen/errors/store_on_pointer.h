GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetFlags(
        IN STORE(flags) const unsigned int *flags);
