GP_LOCAL(VIA(a), VIA(b))
CUresult cuInit(unsigned int Flags);
