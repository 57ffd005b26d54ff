GP_LOCAL(SERVER_HOOK)
CUresult cuInit(unsigned int Flags);
