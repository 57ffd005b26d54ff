GP_LOCAL()
CUresult cuInit(
        IN CUdevprop *Flags);

GP_LOCAL(FORWARD(cuInit, converted))
CUresult cuFoo(
        CONVERT(gpc_convert) CUevent converted);
