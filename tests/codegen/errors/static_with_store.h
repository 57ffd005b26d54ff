GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetFlags(
        STORE(flags) STATIC unsigned int flags);
