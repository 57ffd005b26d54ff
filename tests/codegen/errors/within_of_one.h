GP_LOCAL(OF(active))
CUresult cuCtxSetFlags(
        TO(flags) WITHIN(7) unsigned int flags);
