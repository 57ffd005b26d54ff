GP_LOCAL(OF(active))
CUresult cuCtxSetFlags(
        IN TO(flags) const unsigned int *flags);
