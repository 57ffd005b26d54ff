GP_LOCAL(LAUNCHES(x))
CUresult cuInit(unsigned int Flags);
