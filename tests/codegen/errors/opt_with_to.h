GP_LOCAL(OF(active))
CUresult cuCtxSetFlags(
        TO(flags) OPT unsigned int flags);
