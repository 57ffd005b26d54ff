GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetFlags(
        WITHIN(7, 3) STORE(flags) unsigned int flags);
