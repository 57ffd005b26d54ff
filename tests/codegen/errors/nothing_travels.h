GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);
