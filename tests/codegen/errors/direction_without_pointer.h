GP_LOCAL()
CUresult cuInit(
        IN unsigned int Flags);
