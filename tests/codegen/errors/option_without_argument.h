GP_LOCAL(VIA)
CUresult cuInit(unsigned int Flags);
