GP_LOCAL()
CUresult cuInit(
        IN CUdevprop *a,
        IN CUdevprop *b);

GP_LOCAL(FORWARD(cuInit, a, b))
CUresult cuFoo(
        CONVERT(gpc_convert) CUevent a,
        CONVERT(gpc_convert) CUevent b);
