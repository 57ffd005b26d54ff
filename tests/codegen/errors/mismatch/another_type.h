GP_LOCAL()
CUresult cuInit(
        int Flags);
