GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetFlags(
        STORE(flags) OPT unsigned int flags);
