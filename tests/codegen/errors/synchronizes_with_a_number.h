GP_LOCAL(SYNCHRONIZES(flags))
CUresult cuInit(
        unsigned int flags);
