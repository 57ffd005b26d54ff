GP_LOCAL(OF(active))
CUresult cuCtxSetFlags(
        TO(flags) WITHIN(0, 7) size_t flags);
