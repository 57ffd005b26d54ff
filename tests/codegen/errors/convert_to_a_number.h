GP_LOCAL()
CUresult cuInit(
        unsigned int Flags);

GP_LOCAL(FORWARD(cuInit, a))
CUresult cuFoo(
        CONVERT(gpc_convert) CUevent a);
