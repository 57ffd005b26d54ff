GP_LOCAL(OF(active))
CUresult cuCtxSetFlags(
        WITHIN(7, 3) TO(flags) unsigned int flags);
