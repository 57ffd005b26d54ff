GP_LOCAL(CLIENT_OBJECT(active))
CUresult cuCtxSetFlags(
        STORE(flags) WITHIN(0, 7) size_t flags);
