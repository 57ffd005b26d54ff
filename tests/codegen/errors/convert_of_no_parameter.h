GP_LOCAL()
CUresult cuInit(
        IN CUdevprop *Flags);

GP_LOCAL(FORWARD(cuInit, a))
CUresult cuFoo(
        CONVERT(gpc_convert, b) CUevent a);
