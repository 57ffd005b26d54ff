GP_LOCAL(OF(active))
CUresult cuCtxSetFlags(
        TO(flags) STATIC unsigned int flags);
