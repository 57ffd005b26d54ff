GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetFlags(
        STORE(flags) WITHIN(7) unsigned int flags);
