GP_LOCAL(VIA(gpFoo))
CUresult cuInit(unsigned int Flags);
